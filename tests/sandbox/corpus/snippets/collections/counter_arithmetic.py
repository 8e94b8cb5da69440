from collections import Counter

stock = Counter(lamp=5, desk=2)
sold = Counter(lamp=3, rug=1)
print(stock - sold, stock + sold == Counter({"lamp": 8, "desk": 2, "rug": 1}))
stock.subtract(sold)
dict(sorted(stock.items()))

#: prints
#| Counter({'lamp': 2, 'desk': 2}) True
#: value
#| {"desk": 2, "lamp": 2, "rug": -1}
