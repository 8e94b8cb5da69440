import asyncio
import shop

async def describe(order):
    customer = await shop.get_customer(customer_id=order["customer"])
    return f"{order['id']} {order['item']} for {customer['name'].split()[0]}"

async def main():
    orders = await shop.list_orders(status="shipped")
    return await asyncio.gather(*[describe(order) for order in orders])

for line in asyncio.run(main()):
    print(line)

#: prints
#| 101 lamp for Ada
#| 102 desk for Bo
#| 106 chair for Bo
#| 108 rug for Cy
#| 110 lamp for Di
