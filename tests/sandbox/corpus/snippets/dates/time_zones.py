from datetime import datetime, timedelta, timezone

utc = datetime(2026, 3, 29, 0, 30, tzinfo=timezone.utc)
east = utc.astimezone(timezone(timedelta(hours=9), "JST"))
print(east.isoformat(), east.tzname())
(east - utc).total_seconds()

#: prints
#| 2026-03-29T09:30:00+09:00 JST
#: value
#| 0.0
