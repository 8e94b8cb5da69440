import shop
from functools import lru_cache

@lru_cache(maxsize=None)
def customer_name(customer_id):
    return shop.get_customer(customer_id=customer_id)["name"]

names = [customer_name(order["customer"]) for order in shop.list_orders()]
print(names[:3])
len(set(names))

#: prints
#| ['Ada Byron', 'Bo Chen', 'Ada Byron']
#: value
#| 4
