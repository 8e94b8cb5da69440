import heapq
import shop

orders = shop.list_orders()
largest = heapq.nlargest(3, orders, key=lambda o: o["quantity"] * o["price"])
print([(o["id"], round(o["quantity"] * o["price"], 2)) for o in largest])
list(heapq.merge([1, 4, 9], [2, 3, 10]))

#: prints
#| [(112, 537.0), (103, 358.0), (102, 249.0)]
#: value
#| [1, 2, 3, 4, 9, 10]
