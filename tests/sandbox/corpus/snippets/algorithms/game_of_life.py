from collections import Counter

def step(cells):
    near = Counter((r + dr, c + dc) for r, c in cells for dr in (-1, 0, 1) for dc in (-1, 0, 1) if dr or dc)
    return {cell for cell, n in near.items() if n == 3 or (n == 2 and cell in cells)}

glider = {(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)}
for _ in range(4):
    glider = step(glider)
sorted(glider)

#: value
#| [[1, 2], [2, 3], [3, 1], [3, 2], [3, 3]]
