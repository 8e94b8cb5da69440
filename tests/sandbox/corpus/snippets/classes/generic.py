from typing import Generic, TypeVar

T = TypeVar("T")

class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item

    def map(self, function):
        return Box(function(self.item))

Box(3).map(lambda x: x * 2).map(str).item

#: value
#| "6"
