from functools import cache

@cache
def ways(steps):
    return 1 if steps < 2 else ways(steps - 1) + ways(steps - 2)

(ways(50), ways.cache_info().misses)

#: value
#| [20365011074, 51]
