from collections import deque

maze = ["#########", "#S..#...#", "#.#.#.#.#", "#.#...#E#", "#########"]
start = next((r, c) for r, row in enumerate(maze) for c, cell in enumerate(row) if cell == "S")
queue, seen = deque([(start, 0)]), {start}
steps = None
while queue:
    (r, c), distance = queue.popleft()
    if maze[r][c] == "E":
        steps = distance
        break
    for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        place = (r + dr, c + dc)
        if maze[place[0]][place[1]] != "#" and place not in seen:
            seen.add(place)
            queue.append((place, distance + 1))
steps

#: value
#| 12
