from collections import namedtuple

Point = namedtuple("Point", "x y z", defaults=[0])
p = Point(1, 2)
q = p._replace(x=10)
print(p, q.x, p._asdict())
x, y, z = q
x + y + z

#: prints
#| Point(x=1, y=2, z=0) 10 {'x': 1, 'y': 2, 'z': 0}
#: value
#| 12
