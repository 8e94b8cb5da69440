def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]

{pair: distance(*pair.split()) for pair in ("kitten sitting", "flaw lawn", "same same")}

#: value
#| {"kitten sitting": 3, "flaw lawn": 2, "same same": 0}
