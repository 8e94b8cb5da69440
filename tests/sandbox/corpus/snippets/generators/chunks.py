def chunks(items, size):
    for start in range(0, len(items), size):
        yield items[start : start + size]

[sum(chunk) for chunk in chunks(list(range(10)), 4)]

#: value
#| [6, 22, 17]
