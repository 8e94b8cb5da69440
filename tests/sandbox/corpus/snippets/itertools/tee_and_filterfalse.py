from itertools import compress, dropwhile, filterfalse, starmap, tee

evens, odds = tee(range(10))
print(list(filterfalse(lambda n: n % 2, evens)), [n for n in odds if n % 2])
(list(compress("abcdef", [1, 0, 1, 0, 1, 0])), list(starmap(pow, [(2, 3), (3, 2)])), list(dropwhile(lambda n: n < 3, [1, 4, 2])))

#: prints
#| [0, 2, 4, 6, 8] [1, 3, 5, 7, 9]
#: value
#| [["a", "c", "e"], [8, 9], [4, 2]]
