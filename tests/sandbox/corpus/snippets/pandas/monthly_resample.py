import pandas as pd
import shop

frame = pd.DataFrame(shop.list_orders())
frame["placed"] = pd.to_datetime(frame["placed"])
frame["total"] = frame["quantity"] * frame["price"]
monthly = frame.groupby(frame["placed"].dt.strftime("%Y-%m"))["total"].sum().round(2)
monthly.to_dict()

#: value
#| {"2026-01": 686.8, "2026-02": 660.65, "2026-03": 559.5, "2026-04": 601.25}
