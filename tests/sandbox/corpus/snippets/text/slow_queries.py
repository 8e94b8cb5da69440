import re
import shop

text = shop.read_text(name="app.log")
slow = [(int(ms), table) for ms, table in re.findall(r"slow query ms=(\d+) table=(\w+)", text)]
max(slow)

#: value
#| [1204, "customers"]
