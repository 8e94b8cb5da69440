"""Values of guest code as plain JSON, made inside the guest. Standard library only.

The host walks what it receives once more: this walk is for code that means well, and says in words
what cannot be sent.
"""

import enum
import fractions
import types
import uuid
from array import array
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from typing import Any, Final

from toolfold.errors import ValueRejected
from toolfold.jsontypes import Json
from toolfold.sandbox.values import ValueBudget, Walk, is_light

_LISTS: Final = (list, deque, range, array, KeysView, ValuesView, ItemsView)
_TEXTS: Final = (uuid.UUID, fractions.Fraction, complex)
_CODE: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def to_send(value: object, budget: ValueBudget) -> Json:
    """Return `value` as a tool can receive it.

    Raises:
        ValueRejected: It is over budget, or holds what JSON cannot carry.
    """
    return value if is_light(value) else GuestWalk(budget, strict=True).visit(value, 0)


def to_show(value: object, budget: ValueBudget) -> Json:
    """As `to_send`, but what JSON cannot carry becomes its description."""
    return value if is_light(value) else GuestWalk(budget, strict=False).visit(value, 0)


class GuestWalk(Walk):
    """One pass over one value of real Python."""

    def __init__(self, budget: ValueBudget, *, strict: bool) -> None:
        super().__init__(budget, strict=strict)
        self._open: set[int] = set()

    def _uncommon(self, value: Any, depth: int) -> Json:
        if isinstance(value, enum.Enum):
            return self.visit(value.value, depth)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if isinstance(value, _LISTS):
            return self._sequence(value, depth)
        if isinstance(value, int):
            return self.visit(int(value), depth)
        if isinstance(value, float):
            return self.visit(float(value), depth)
        if isinstance(value, bytearray | memoryview):
            return self.visit(bytes(value), depth)
        return self._rare(value, depth)

    def _rare(self, value: Any, depth: int) -> Json:
        if isinstance(value, _TEXTS):
            return self.visit(str(value), depth)
        if type(value).__name__ == "NaTType":  # of pandas: it takes itself for a date
            return self._foreign("NaT, which JSON cannot carry", "NaT")
        return super()._uncommon(value, depth)

    def _mapping(self, value: Mapping[object, object], depth: int) -> Json:
        if id(value) in self._open:
            return self._endless("{...}")
        self._open.add(id(value))
        try:
            return super()._mapping(value, depth)
        finally:
            self._open.discard(id(value))

    def _sequence(self, value: Any, depth: int) -> Json:
        if id(value) in self._open:
            return self._endless("[...]")
        self._open.add(id(value))
        try:
            return super()._sequence(value, depth)
        finally:
            self._open.discard(id(value))

    def _endless(self, shown: str) -> Json:
        return self._foreign("a value that holds itself", shown)

    def _object(self, value: Any, depth: int) -> Json:
        if type(value).__module__.partition(".")[0] in {"numpy", "pandas"}:
            return self._numeric(value, depth)
        if isinstance(value, BaseException):
            return super()._object(value, depth)
        if isinstance(value, _CODE):
            return self._foreign_code(value)
        if isinstance(value, Mapping):
            return self._mapping(dict(value), depth)
        attributes = _attributes(value)
        if self._strict and attributes:
            return self._mapping(attributes, depth)
        name = type(value).__name__
        if self._strict:
            return self._foreign(f"<{name}>, which is not data", "")
        if _describes_itself(value):
            return self._text(str(value))
        return {name: self._mapping(attributes, depth)} if attributes is not None else f"<{name}>"

    def _numeric(self, value: Any, depth: int) -> Json:
        """Arrays are lists and numbers are numbers; a table is shown, and sent by its records."""
        if hasattr(value, "tolist") and hasattr(value, "dtype") and hasattr(value, "ndim"):
            if getattr(value, "size", 0) > self._budget.nodes:
                if not self._strict:
                    return self._text(str(value))
                raise ValueRejected(
                    f"The array holds more than {self._budget.nodes:,} numbers. Send fewer."
                )
            if type(value).__module__.startswith("numpy"):
                plain = value.tolist()
                return self._text(str(value)) if plain is value else self.visit(plain, depth)
        name = type(value).__name__
        return self._foreign(
            f"a {name}; convert it, such as .to_dict('records') or .tolist()", str(value)
        )

    def _foreign_code(self, value: Any) -> Json:
        shown = f"<{getattr(value, '__name__', type(value).__name__)}>"
        return self._foreign(f"{shown}, which is not data", shown)


def _attributes(value: object) -> dict[object, object] | None:
    """Return what an object of a guest's class holds; None for what has no attributes at all."""
    found: dict[object, object] = dict(getattr(value, "__dict__", {}))
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    for name in slots:
        if hasattr(value, name) and name not in {"__dict__", "__weakref__"}:
            found[name] = getattr(value, name)
    return found if found or hasattr(value, "__dict__") or slots else None


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _describes_itself(value: object) -> bool:
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return False
    return kind.__repr__ is not object.__repr__ or kind.__str__ is not object.__str__
