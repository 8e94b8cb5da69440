import shop

totals = {}
for order in shop.list_orders():
    if order["status"] == "cancelled":
        continue
    name = shop.get_customer(customer_id=order["customer"])["name"]
    totals[name] = totals.get(name, 0) + order["quantity"] * order["price"]

for name, total in sorted(totals.items(), key=lambda pair: -pair[1]):
    print(f"{name:<12}{total:>10.2f}")
{name: round(total, 2) for name, total in totals.items()}

#: prints
#| Ada Byron       677.80
#| Cy Dorn         657.00
#| Di Eriksen      641.25
#| Bo Chen         428.00
#: value
#| {"Ada Byron": 677.8, "Bo Chen": 428.0, "Di Eriksen": 641.25, "Cy Dorn": 657.0}
