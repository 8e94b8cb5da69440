lines = ["a=1", "bad", "b=22", "c="]
values = {key: int(value) for line in lines if (key := line.partition("=")[0]) and (value := line.partition("=")[2])}
matrix = [[r * c for c in range(1, 4)] for r in range(1, 4)]
print(values, [list(column) for column in zip(*matrix)])
{n % 3 for n in range(10)}

#: prints
#| {'a': 1, 'b': 22} [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
#: value
#| [0, 1, 2]
