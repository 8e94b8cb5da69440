import asyncio
import shop

async def one(order_id):
    order = await shop.get_order(order_id=order_id)
    return order["item"]

tasks = [asyncio.create_task(one(i)) for i in (101, 102, 105)]
done = [await task for task in tasks]
done

#: value
#| ["lamp", "desk", "shelf"]
