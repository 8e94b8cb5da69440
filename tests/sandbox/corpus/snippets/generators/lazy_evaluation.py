calls = []

def numbers():
    for n in range(5):
        calls.append(n)
        yield n

first_large = next(n for n in numbers() if n > 1)
(first_large, calls)

#: value
#| [2, [0, 1, 2]]
