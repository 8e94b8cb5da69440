from abc import ABC, abstractmethod

class Exporter(ABC):
    @abstractmethod
    def export(self, rows): ...

class Lines(Exporter):
    def export(self, rows):
        return "\n".join(",".join(map(str, row)) for row in rows)

try:
    Exporter()
except TypeError as error:
    print("cannot:", str(error)[:43])
print(Lines().export([(1, "a"), (2, "b")]))

#: prints
#| cannot: Can't instantiate abstract class Exporter w
#| 1,a
#| 2,b
