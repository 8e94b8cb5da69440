from dataclasses import dataclass

@dataclass
class Point:
    x: float
    y: float = 0.0

    def norm(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5

points = [Point(3, 4), Point(1)]
print(points[0])
[p.norm() for p in points]

#: prints
#| Point(x=3, y=4)
#: value
#| [5.0, 1.0]
