from datetime import date

start, end = date(2026, 2, 27), date(2026, 3, 2)
print((end - start).days, start.isoformat(), end.strftime("%d.%m.%Y"))
start.weekday()

#: prints
#| 3 2026-02-27 02.03.2026
#: value
#| 4
