from operator import attrgetter, itemgetter, methodcaller
import shop

orders = shop.list_orders()
newest = max(orders, key=itemgetter("placed"))
by_item = sorted(orders, key=itemgetter("item", "id"))
print(newest["id"], [o["id"] for o in by_item[:4]])
list(map(methodcaller("upper"), ["a", "b"])) + [attrgetter("real")(3 + 4j)]

#: prints
#| 112 [103, 106, 112, 102]
#: value
#| ["A", "B", 3.0]
