import asyncio
import shop

first = shop.get_order(order_id=101)
second = await shop.get_order(order_id=102)
third, fourth = await asyncio.gather(shop.get_order(order_id=103), shop.get_order(order_id=104))
[each["item"] for each in (first, second, third, fourth)]

#: value
#| ["lamp", "desk", "chair", "lamp"]
