import asyncio
import shop

async def fetch(customer_id):
    return await shop.get_customer(customer_id=customer_id)

found = await asyncio.gather(*(fetch(i) for i in (1, 42, 3)), return_exceptions=True)
[str(each) if isinstance(each, Exception) else each["name"] for each in found]

#: value
#| ["Ada Byron", "shop.get_customer failed: There is no customer 42.", "Cy Dorn"]
