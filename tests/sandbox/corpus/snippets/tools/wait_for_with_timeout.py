import asyncio
import shop

async def slow():
    await asyncio.sleep(30)

order = await asyncio.wait_for(shop.get_order(order_id=101), timeout=20)
try:
    await asyncio.wait_for(slow(), timeout=0.01)
    outcome = "finished"
except asyncio.TimeoutError:
    outcome = "timed out"
(order["item"], outcome)

#: value
#| ["lamp", "timed out"]
