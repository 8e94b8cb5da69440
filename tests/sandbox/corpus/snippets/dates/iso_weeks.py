from datetime import date, timedelta

day = date(2025, 12, 28)
[tuple((day + timedelta(days=n)).isocalendar())[:2] for n in range(3)]

#: value
#| [[2025, 52], [2026, 1], [2026, 1]]
