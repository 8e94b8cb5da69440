import shop

page, seen = 0, []
while page is not None:
    answer = shop.page_of_orders(page=page, size=5)
    seen.extend(order["id"] for order in answer["orders"])
    print("page", page, "->", len(answer["orders"]))
    page = answer["next"]
seen

#: prints
#| page 0 -> 5
#| page 1 -> 5
#| page 2 -> 2
#: value
#| [101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112]
