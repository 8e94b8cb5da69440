from itertools import chain, cycle, islice, repeat, zip_longest

rows = list(zip_longest("abc", [1, 2], fillvalue="-"))
print(rows, list(chain.from_iterable([[1], [2, 3]])))
"".join(islice(cycle("xyz"), 7)) + "".join(repeat("!", 2))

#: prints
#| [('a', 1), ('b', 2), ('c', '-')] [1, 2, 3]
#: value
#| "xyzxyzx!!"
