import sqlite3

db = sqlite3.connect(":memory:")
row = db.execute("""
    select date('2026-01-31', '+1 month'), strftime('%Y-%W', '2026-03-01'),
           json_extract('{"a": {"b": [1, 2, 3]}}', '$.a.b[1]')
""").fetchone()
list(row)

#: value
#| ["2026-03-03", "2026-08", 2]
