from enum import Enum

class Status(Enum):
    OPEN = "open"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"

import shop
counts = {status: 0 for status in Status}
for order in shop.list_orders():
    counts[Status(order["status"])] += 1
for status, n in counts.items():
    print(status.name.title(), n)

#: prints
#| Open 5
#| Shipped 5
#| Cancelled 2
