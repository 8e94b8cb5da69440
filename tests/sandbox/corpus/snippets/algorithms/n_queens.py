def queens(n, row=0, columns=frozenset(), up=frozenset(), down=frozenset()):
    if row == n:
        return 1
    return sum(
        queens(n, row + 1, columns | {c}, up | {row + c}, down | {row - c})
        for c in range(n)
        if c not in columns and row + c not in up and row - c not in down
    )

[queens(n) for n in range(1, 7)]

#: value
#| [1, 0, 0, 2, 10, 4]
