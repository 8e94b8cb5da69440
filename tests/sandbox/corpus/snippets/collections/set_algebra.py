import shop

orders = shop.list_orders()
open_ones = {o["customer"] for o in orders if o["status"] == "open"}
shipped = {o["customer"] for o in orders if o["status"] == "shipped"}
print(sorted(open_ones & shipped), sorted(open_ones - shipped), sorted(open_ones ^ shipped))
open_ones <= {1, 2, 3, 4}

#: prints
#| [1, 3, 4] [] [2]
#: value
#| true
