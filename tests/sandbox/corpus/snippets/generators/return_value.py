def reader(rows):
    good = 0
    for row in rows:
        if row is None:
            continue
        good += 1
        yield row
    return good

def collect(rows):
    count = yield from reader(rows)
    yield f"{count} rows"

list(collect([1, None, 2]))

#: value
#| [1, 2, "2 rows"]
