import shop
from datetime import datetime
from itertools import groupby

def quarter(order):
    placed = datetime.fromisoformat(order["placed"])
    return f"{placed.year}-Q{(placed.month - 1) // 3 + 1}"

orders = sorted(shop.list_orders(), key=quarter)
{name: [o["id"] for o in group] for name, group in groupby(orders, key=quarter)}

#: value
#| {"2026-Q1": [101, 102, 103, 104, 105, 106, 107, 108, 109, 110], "2026-Q2": [111, 112]}
