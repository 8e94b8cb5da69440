import shop

order = shop.get_order(107)
customer = shop.get_customer(order["customer"])
f"{customer['name']} bought a {order['item']} for {order['price']:.2f}"

#: value
#| "Di Eriksen bought a desk for 249.00"
