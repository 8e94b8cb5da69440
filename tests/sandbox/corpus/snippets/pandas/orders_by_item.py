import pandas as pd
import shop

frame = pd.DataFrame(shop.list_orders())
frame["total"] = frame["quantity"] * frame["price"]
summary = frame.groupby("item")["total"].agg(["count", "sum"]).sort_values("sum", ascending=False)
print(summary.round(2).to_csv(), end="")

#: prints
#| item,count,sum
#| chair,3,1074.0
#| desk,2,498.0
#| rug,2,360.0
#| lamp,3,319.2
#| shelf,2,257.0
