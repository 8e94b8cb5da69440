import shop
from collections import defaultdict
from datetime import datetime

months = defaultdict(float)
for order in shop.list_orders():
    placed = datetime.fromisoformat(order["placed"])
    months[placed.strftime("%Y-%m")] += order["quantity"] * order["price"]
{month: round(total, 2) for month, total in sorted(months.items())}

#: value
#| {"2026-01": 686.8, "2026-02": 660.65, "2026-03": 559.5, "2026-04": 601.25}
