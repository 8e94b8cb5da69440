from collections import deque

queue = deque(range(6), maxlen=6)
queue.rotate(2)
queue.append(99)
queue.appendleft(-1)
(list(queue), queue.pop())

#: value
#| [[-1, 5, 0, 1, 2, 3], 3]
