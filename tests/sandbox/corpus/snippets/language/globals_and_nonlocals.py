total = 0

def add(n):
    global total
    total += n

for n in range(5):
    add(n)
(total, "total" in globals(), callable(add))

#: value
#| [10, true, true]
