def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b

from itertools import islice, takewhile

print(list(islice(fibonacci(), 10)))
sum(n for n in takewhile(lambda n: n < 4_000_000, fibonacci()) if n % 2 == 0)

#: prints
#| [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
#: value
#| 4613732
