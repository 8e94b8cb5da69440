import shop

async def pages(size):
    page = 0
    while page is not None:
        answer = await shop.page_of_orders(page=page, size=size)
        yield [order["id"] for order in answer["orders"]]
        page = answer["next"]

async for ids in pages(5):
    print(ids)

#: prints
#| [101, 102, 103, 104, 105]
#| [106, 107, 108, 109, 110]
#| [111, 112]
