from datetime import datetime

meetings = [("09:00", "10:30"), ("10:00", "11:00"), ("13:00", "14:00"), ("14:00", "14:30")]
spans = sorted((datetime.strptime(a, "%H:%M"), datetime.strptime(b, "%H:%M")) for a, b in meetings)
merged = [spans[0]]
for start, end in spans[1:]:
    if start <= merged[-1][1]:
        merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    else:
        merged.append((start, end))
for start, end in merged:
    print(f"{start:%H:%M}-{end:%H:%M}")
sum((end - start).total_seconds() for start, end in merged) / 3600

#: prints
#| 09:00-11:00
#| 13:00-14:30
#: value
#| 3.5
