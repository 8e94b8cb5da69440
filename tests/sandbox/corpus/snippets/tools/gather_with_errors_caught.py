import asyncio
import shop

async def parcel(order_id):
    try:
        answer = await shop.ship(order_id=order_id)
        return answer["parcel"]
    except RuntimeError as error:
        return str(error)

await asyncio.gather(*[parcel(i) for i in (105, 106, 107, 108)])

#: value
#| ["P735", "shop.ship failed: Order 106 is shipped.", "P749", "shop.ship failed: Order 108 is shipped."]
