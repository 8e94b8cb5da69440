def arrangements(items):
    if not items:
        yield []
    for index, item in enumerate(items):
        for rest in arrangements(items[:index] + items[index + 1 :]):
            yield [item, *rest]

["".join(a) for a in arrangements("abc")]

#: value
#| ["abc", "acb", "bac", "bca", "cab", "cba"]
