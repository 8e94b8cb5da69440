from collections import OrderedDict

cache = OrderedDict()
for key in "abcab":
    if key in cache:
        cache.move_to_end(key)
    cache[key] = cache.get(key, 0) + 1
    if len(cache) > 2:
        cache.popitem(last=False)
list(cache.items())

#: value
#| [["a", 1], ["b", 1]]
