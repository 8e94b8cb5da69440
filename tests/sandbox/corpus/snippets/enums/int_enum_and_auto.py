from enum import IntEnum, auto

class Level(IntEnum):
    LOW = auto()
    MEDIUM = auto()
    HIGH = auto()

readings = [Level.HIGH, Level.LOW, Level.MEDIUM, Level.LOW]
print([level.name for level in sorted(readings)])
(max(readings).name, int(sum(readings)), Level["LOW"] < Level.HIGH)

#: prints
#| ['LOW', 'LOW', 'MEDIUM', 'HIGH']
#: value
#| ["HIGH", 7, true]
