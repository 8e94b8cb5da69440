import sqlite3

db = sqlite3.connect(":memory:")
db.create_function("initials", 1, lambda name: "".join(w[0] for w in name.split()))
db.execute("create table sale (name text, amount real)")
db.executemany("insert into sale values (?, ?)", [("Ada Byron", 10), ("Bo Chen", 5), ("Ada Byron", 7)])
query = "select initials(name), amount, sum(amount) over (order by rowid) from sale"
db.execute(query).fetchall()

#: value
#| [["AB", 10.0, 10.0], ["BC", 5.0, 15.0], ["AB", 7.0, 22.0]]
