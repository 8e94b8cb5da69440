import asyncio
import shop

async def price(order_id):
    order = await shop.get_order(order_id=order_id)
    return order_id, order["price"]

prices = {}
for next_one in asyncio.as_completed([price(i) for i in (101, 102, 103)]):
    order_id, value = await next_one
    prices[order_id] = value
sorted(prices.items())

#: value
#| [[101, 39.9], [102, 249.0], [103, 89.5]]
