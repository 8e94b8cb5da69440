def counter(start=0):
    count = start

    def increase(by=1):
        nonlocal count
        count += by
        return count

    return increase

one, two = counter(), counter(10)
one(), one(), two(5)
functions = [lambda n, k=k: n * k for k in (1, 2, 3)]
(one(), two(), [f(10) for f in functions])

#: value
#| [3, 16, [10, 20, 30]]
