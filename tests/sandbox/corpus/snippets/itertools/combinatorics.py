from itertools import combinations, permutations, product

print(len(list(permutations("abcd", 2))), ["".join(c) for c in combinations("abc", 2)])
[a * 10 + b for a, b in product((1, 2), repeat=2)]

#: prints
#| 12 ['ab', 'ac', 'bc']
#: value
#| [11, 12, 21, 22]
