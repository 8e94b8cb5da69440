import sqlite3

db = sqlite3.connect(":memory:")
db.row_factory = sqlite3.Row
db.execute("create table account (name text primary key, balance integer check (balance >= 0))")
db.executemany("insert into account values (?, ?)", [("a", 100), ("b", 20)])
db.commit()
try:
    with db:
        db.execute("update account set balance = balance + 150 where name = 'b'")
        db.execute("update account set balance = balance - 150 where name = 'a'")
except sqlite3.IntegrityError as error:
    print("rolled back:", str(error).split(":")[0])
{row["name"]: row["balance"] for row in db.execute("select * from account")}

#: prints
#| rolled back: CHECK constraint failed
#: value
#| {"a": 100, "b": 20}
