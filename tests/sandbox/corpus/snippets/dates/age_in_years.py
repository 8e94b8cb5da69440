from datetime import date

def age(born, today):
    return today.year - born.year - ((today.month, today.day) < (born.month, born.day))

[age(date(2000, 2, 29), date(2026, 2, 28)), age(date(2000, 2, 29), date(2026, 3, 1))]

#: value
#| [25, 26]
