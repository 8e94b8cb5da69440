from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

berlin = ZoneInfo("Europe/Berlin")
before = datetime(2026, 3, 29, 0, 59, tzinfo=timezone.utc)
for moment in (before, before + timedelta(minutes=2)):
    print(moment.astimezone(berlin).strftime("%H:%M %Z"))

#: prints
#| 01:59 CET
#| 03:01 CEST
