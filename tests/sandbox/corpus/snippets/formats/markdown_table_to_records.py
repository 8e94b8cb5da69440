table = """
| item | stock |
|------|------:|
| lamp | 12 |
| desk | 3 |
"""
lines = [line.strip("| \n") for line in table.strip().splitlines()]
header = [cell.strip() for cell in lines[0].split("|")]
[dict(zip(header, (cell.strip() for cell in line.split("|")))) for line in lines[2:]]

#: value
#| [{"item": "lamp", "stock": "12"}, {"item": "desk", "stock": "3"}]
