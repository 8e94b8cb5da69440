import asyncio
import shop

queue = asyncio.Queue()
for customer_id in (4, 3, 2, 1):
    queue.put_nowait(customer_id)
found = {}

async def worker():
    while not queue.empty():
        customer_id = queue.get_nowait()
        customer = await shop.get_customer(customer_id=customer_id)
        found[customer_id] = customer["email"].split("@")[1]
        queue.task_done()

await asyncio.gather(worker(), worker())
dict(sorted(found.items()))

#: value
#| {"1": "example.org", "2": "example.com", "3": "example.net", "4": "example.org"}
