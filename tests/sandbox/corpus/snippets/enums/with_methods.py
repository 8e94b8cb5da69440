from enum import Enum

class Planet(Enum):
    EARTH = (5.97e24, 6.37e6)
    MARS = (6.42e23, 3.39e6)

    def __init__(self, mass, radius):
        self.mass = mass
        self.radius = radius

    @property
    def gravity(self):
        return round(6.674e-11 * self.mass / self.radius ** 2, 2)

{planet.name: planet.gravity for planet in Planet}

#: value
#| {"EARTH": 9.82, "MARS": 3.73}
