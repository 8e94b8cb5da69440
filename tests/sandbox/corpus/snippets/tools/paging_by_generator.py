import shop

def all_orders(size=4):
    page = 0
    while page is not None:
        answer = shop.page_of_orders(page=page, size=size)
        yield from answer["orders"]
        page = answer["next"]

first_rug = next(order for order in all_orders() if order["item"] == "rug")
print(first_rug["id"], first_rug["placed"])
sum(1 for _ in all_orders())

#: prints
#| 108 2026-03-01T12:00:00
#: value
#| 12
