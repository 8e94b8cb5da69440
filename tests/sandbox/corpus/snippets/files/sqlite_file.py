import os
import sqlite3
import tempfile

folder = tempfile.mkdtemp()
path = os.path.join(folder, "shop.db")
with sqlite3.connect(path) as db:
    db.execute("create table t (n integer)")
    db.executemany("insert into t values (?)", [(n,) for n in range(10)])
db.close()
again = sqlite3.connect(path)
(again.execute("select sum(n) from t").fetchone()[0], os.path.getsize(path) > 0)

#: value
#| [45, true]
