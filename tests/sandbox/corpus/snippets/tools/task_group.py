import asyncio
import shop

async def city(customer_id):
    customer = await shop.get_customer(customer_id=customer_id)
    return customer["city"]

async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(city(i)) for i in (1, 2, 3, 4)]
[task.result() for task in tasks]

#: value
#| ["London", "Taipei", "Berlin", "Oslo"]
