from typing import Protocol, runtime_checkable

@runtime_checkable
class Closable(Protocol):
    def close(self) -> None: ...

class File:
    def close(self) -> None:
        print("closed")

for thing in (File(), "text"):
    if isinstance(thing, Closable):
        thing.close()
    else:
        print(type(thing).__name__, "cannot be closed")

#: prints
#| closed
#| str cannot be closed
