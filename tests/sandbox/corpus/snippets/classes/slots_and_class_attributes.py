class Counter:
    __slots__ = ("value",)
    made = 0

    def __init__(self):
        type(self).made += 1
        self.value = 0

a, b = Counter(), Counter()
a.value += 5
try:
    a.other = 1
except AttributeError:
    print("no such slot")
(Counter.made, a.value, b.value)

#: prints
#| no such slot
#: value
#| [2, 5, 0]
