import shop

customers = {c["id"]: c for c in (shop.get_customer(customer_id=i) for i in range(1, 5))}
report = [
    {"order": o["id"], "vip": customers[o["customer"]]["vip"], "total": round(o["quantity"] * o["price"], 2)}
    for o in shop.list_orders()
    if o["status"] == "open"
]
report.sort(key=lambda row: (not row["vip"], -row["total"]))
report

#: value
#| [{"order": 103, "vip": true, "total": 358.0}, {"order": 107, "vip": true, "total": 249.0}, {"order": 109, "vip": true, "total": 240.0}, {"order": 105, "vip": true, "total": 192.75}, {"order": 112, "vip": false, "total": 537.0}]
