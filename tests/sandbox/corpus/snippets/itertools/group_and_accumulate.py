from itertools import accumulate, groupby

days = [("mon", 3), ("mon", 4), ("tue", 1), ("wed", 2), ("wed", 2)]
sums = {day: sum(n for _, n in rows) for day, rows in groupby(days, key=lambda row: row[0])}
print(sums)
list(accumulate(sums.values()))

#: prints
#| {'mon': 7, 'tue': 1, 'wed': 4}
#: value
#| [7, 8, 12]
