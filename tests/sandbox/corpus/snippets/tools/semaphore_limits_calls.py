import asyncio
import shop

gate = asyncio.Semaphore(2)
running = peak = 0

async def load(order_id):
    global running, peak
    async with gate:
        running += 1
        peak = max(peak, running)
        order = await shop.get_order(order_id=order_id)
        running -= 1
        return order["quantity"]

quantities = await asyncio.gather(*[load(i) for i in range(101, 113)])
print(quantities, "peak", peak)
sum(quantities)

#: prints
#| [2, 1, 4, 1, 3, 2, 1, 1, 2, 5, 1, 6] peak 2
#: value
#| 29
