import difflib

known = ["list_orders", "get_order", "get_customer", "ship"]
{word: difflib.get_close_matches(word, known, n=1) for word in ("list_order", "getcustomer", "zzz")}

#: value
#| {"list_order": ["list_orders"], "getcustomer": ["get_customer"], "zzz": []}
