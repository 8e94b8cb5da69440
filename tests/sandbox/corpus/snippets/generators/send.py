def average():
    total = count = 0
    value = None
    while True:
        value = yield (total / count if count else None)
        total += value
        count += 1

running = average()
next(running)
[running.send(n) for n in (10, 20, 60)]

#: value
#| [10.0, 15.0, 30.0]
