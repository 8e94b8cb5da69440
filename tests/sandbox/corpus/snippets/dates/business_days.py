from datetime import date, timedelta

def business_days(start, end, holidays=frozenset()):
    day = start
    while day <= end:
        if day.weekday() < 5 and day not in holidays:
            yield day
        day += timedelta(days=1)

days = list(business_days(date(2026, 4, 30), date(2026, 5, 8), {date(2026, 5, 1)}))
[day.strftime("%a %d") for day in days]

#: value
#| ["Thu 30", "Mon 04", "Tue 05", "Wed 06", "Thu 07", "Fri 08"]
