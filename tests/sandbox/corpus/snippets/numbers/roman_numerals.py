def roman(n):
    marks = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
             (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    text = ""
    for value, mark in marks:
        count, n = divmod(n, value)
        text += mark * count
    return text

[roman(n) for n in (4, 9, 1994, 2026)]

#: value
#| ["IV", "IX", "MCMXCIV", "MMXXVI"]
