import bisect

def grade(score, breaks=(60, 70, 80, 90), letters="FDCBA"):
    return letters[bisect.bisect(breaks, score)]

row = []
for score in (33, 99, 77, 70, 89, 90, 100):
    bisect.insort(row, score)
("".join(grade(s) for s in row), row)

#: value
#| ["FCCBAAA", [33, 70, 77, 89, 90, 99, 100]]
