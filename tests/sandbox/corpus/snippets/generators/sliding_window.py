from collections import deque
from itertools import islice

def windows(values, size):
    values = iter(values)
    window = deque(islice(values, size), maxlen=size)
    if len(window) == size:
        yield tuple(window)
    for value in values:
        window.append(value)
        yield tuple(window)

[round(sum(w) / 3, 2) for w in windows([3, 5, 8, 13, 21], 3)]

#: value
#| [5.33, 8.67, 14.0]
