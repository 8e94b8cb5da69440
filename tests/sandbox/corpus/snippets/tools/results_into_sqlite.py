import shop
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("create table orders (id integer primary key, item text, quantity integer, price real)")
db.executemany(
    "insert into orders values (:id, :item, :quantity, :price)",
    [{k: o[k] for k in ("id", "item", "quantity", "price")} for o in shop.list_orders()],
)
query = """
    select item, sum(quantity) as n, round(sum(quantity * price), 2) as total
    from orders group by item order by total desc
"""
for item, n, total in db.execute(query):
    print(f"{item:<6} {n:>3} {total:>8.2f}")

#: prints
#| chair   12  1074.00
#| desk     2   498.00
#| rug      3   360.00
#| lamp     8   319.20
#| shelf    4   257.00
