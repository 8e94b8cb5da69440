items = [("gold", 10, 60), ("silver", 20, 100), ("bronze", 30, 120)]

def best(capacity):
    table = [(0, ())] * (capacity + 1)
    for name, weight, value in items:
        for room in range(capacity, weight - 1, -1):
            worth, chosen = table[room - weight]
            table[room] = max(table[room], (worth + value, (*chosen, name)), key=lambda t: t[0])
    return table[capacity]

best(50)

#: value
#| [220, ["silver", "bronze"]]
