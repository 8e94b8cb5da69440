from itertools import islice, pairwise

readings = [10, 13, 11, 18, 18]
changes = [b - a for a, b in pairwise(readings)]

def batched(values, n):
    iterator = iter(values)
    while batch := list(islice(iterator, n)):
        yield batch

(changes, list(batched(readings, 2)))

#: value
#| [[3, -2, 7, 0], [[10, 13], [11, 18], [18]]]
