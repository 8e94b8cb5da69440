first, *middle, last = range(6)
(a, b), c = [1, 2], 3
merged = {**{"x": 1, "y": 2}, "y": 3}

def total(*args, scale=1, **extra):
    return sum(args) * scale + sum(extra.values())

(middle, a + b + c, merged, total(*[1, 2], **{"scale": 10, "bonus": 5}))

#: value
#| [[1, 2, 3, 4], 6, {"x": 1, "y": 3}, 35]
