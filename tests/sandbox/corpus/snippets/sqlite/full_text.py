import sqlite3

db = sqlite3.connect(":memory:")
db.execute("create virtual table note using fts5(body)")
db.executemany("insert into note values (?)", [("the lamp is broken",), ("a new desk",), ("lamp and rug",)])
[row[0] for row in db.execute("select body from note where note match 'lamp' order by rowid")]

#: value
#| ["the lamp is broken", "lamp and rug"]
