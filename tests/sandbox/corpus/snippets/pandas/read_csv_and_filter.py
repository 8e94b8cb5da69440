import io
import pandas as pd
import shop

frame = pd.read_csv(io.StringIO(shop.read_text(name="orders.csv")), parse_dates=["placed"])
recent = frame[(frame["placed"] >= "2026-03-01") & (frame["status"] != "cancelled")]
recent[["id", "item"]].to_dict("records")

#: value
#| [{"id": 108, "item": "rug"}, {"id": 109, "item": "rug"}, {"id": 110, "item": "lamp"}, {"id": 112, "item": "chair"}]
