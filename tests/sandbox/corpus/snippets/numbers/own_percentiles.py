def percentile(values, percent):
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

times = [12, 15, 11, 90, 14, 13, 220, 16]
{p: round(percentile(times, p), 1) for p in (50, 90, 99)}

#: value
#| {"50": 14.5, "90": 129.0, "99": 210.9}
