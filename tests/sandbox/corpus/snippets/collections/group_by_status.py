import shop
from collections import defaultdict

by_status = defaultdict(list)
for order in shop.list_orders():
    by_status[order["status"]].append(order["id"])
dict(by_status)

#: value
#| {"shipped": [101, 102, 106, 108, 110], "open": [103, 105, 107, 109, 112], "cancelled": [104, 111]}
