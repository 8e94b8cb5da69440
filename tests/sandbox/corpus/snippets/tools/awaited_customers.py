import asyncio
import shop

orders = await shop.list_orders(status="open")
ids = sorted({order["customer"] for order in orders})
customers = await asyncio.gather(*[shop.get_customer(customer_id=i) for i in ids])
for customer in customers:
    mine = [order["id"] for order in orders if order["customer"] == customer["id"]]
    print(customer["name"], mine)
len(customers)

#: prints
#| Ada Byron [103, 109]
#| Cy Dorn [112]
#| Di Eriksen [105, 107]
#: value
#| 3
