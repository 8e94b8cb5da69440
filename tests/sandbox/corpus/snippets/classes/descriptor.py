class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive")
        setattr(instance, self.name, value)

class Box:
    width = Positive()
    height = Positive()

    def __init__(self, width, height):
        self.width, self.height = width, height

box = Box(2, 3)
try:
    box.height = 0
except ValueError as error:
    print(error)
box.width * box.height

#: prints
#| height must be positive
#: value
#| 6
