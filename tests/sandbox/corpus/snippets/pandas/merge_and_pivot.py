import pandas as pd
import shop

orders = pd.DataFrame(shop.list_orders())
customers = pd.DataFrame([shop.get_customer(customer_id=i) for i in range(1, 5)])
merged = orders.merge(customers, left_on="customer", right_on="id", suffixes=("", "_c"))
pivot = merged.pivot_table(index="city", columns="status", values="quantity", aggfunc="sum", fill_value=0)
for city, row in pivot.iterrows():
    print(city, {name: int(n) for name, n in row.items()})

#: prints
#| Berlin {'cancelled': 1, 'open': 6, 'shipped': 1}
#| London {'cancelled': 0, 'open': 6, 'shipped': 2}
#| Oslo {'cancelled': 0, 'open': 4, 'shipped': 5}
#| Taipei {'cancelled': 1, 'open': 0, 'shipped': 3}
