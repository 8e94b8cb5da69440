"""The budgeted walk that every value from guest code passes before we touch it.

Values arrive with aliasing intact: a list of 40 levels, each holding the one below twice, is 41
objects and a trillion visits. So the walk counts visits, not objects, and gives back a tree of
plain JSON that nobody downstream needs to fear.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, TypeGuard

from toolfold.errors import ValueRejected
from toolfold.jsontypes import Json

_MAX_INT_BITS = 4096
_LIGHT_CHARS = 200
_LIGHT_BYTES = 4 * _LIGHT_CHARS
_LIGHT_INT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueBudget:
    """How much one inbound value may weigh."""

    nodes: int
    depth: int
    size_bytes: int


def admit(value: object, budget: ValueBudget) -> Json:
    """Return `value` as plain JSON, with tuples and sets as lists and dates as ISO text.

    Objects of guest classes become their attributes. Bytes, and numbers that JSON lacks, are
    refused, because no tool could receive them.

    Raises:
        ValueRejected: The value is over budget, or holds what JSON cannot carry.
    """
    if budget.size_bytes >= _LIGHT_BYTES and is_light(value):
        return value
    return Walk(budget, strict=True).visit(value, 0)


def admit_for_display(value: object, budget: ValueBudget) -> Json:
    """As `admit`, but what JSON cannot carry becomes its description instead of an error."""
    if budget.size_bytes >= _LIGHT_BYTES and is_light(value):
        return value
    return Walk(budget, strict=False).visit(value, 0)


def is_light(value: object) -> TypeGuard[Json]:
    """Whether `value` is in any budget of `_LIGHT_BYTES`, so that there is nothing to walk."""
    kind = type(value)
    if kind is str:
        return len(value) < _LIGHT_CHARS  # type: ignore[arg-type]
    if kind is int:
        return -_LIGHT_INT < value < _LIGHT_INT  # type: ignore[operator]
    return value is None or kind is bool


class Walk:
    """One pass over one value, spending one budget."""

    def __init__(self, budget: ValueBudget, *, strict: bool) -> None:
        self._budget = budget
        self._strict = strict
        self._nodes = 0
        self._size = 0

    def visit(self, value: object, depth: int) -> Json:
        self._nodes += 1
        if self._nodes > self._budget.nodes:
            raise ValueRejected(
                f"The value holds more than {self._budget.nodes:,} parts (shared parts count each "
                "time they appear). Send a smaller value, or send it in pieces."
            )
        kind = type(value)
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if value is None or kind is bool:
            return value  # type: ignore[return-value]
        if kind is dict:
            return self._mapping(value, depth)  # type: ignore[arg-type]
        if kind is list or kind is tuple:
            return self._sequence(value, depth)
        if kind is int:
            return self._integer(value)  # type: ignore[arg-type]
        if kind is float:
            return self._float(value)  # type: ignore[arg-type]
        return self._uncommon(value, depth)

    def _spend(self, size: int) -> None:
        self._size += size
        if self._size > self._budget.size_bytes:
            raise ValueRejected(
                f"The value is larger than {self._budget.size_bytes:,} bytes. "
                "Send a smaller value, or send it in pieces."
            )

    def _deeper(self, depth: int) -> int:
        if depth >= self._budget.depth:
            raise ValueRejected(
                f"The value is nested more than {self._budget.depth} levels deep. Flatten it."
            )
        return depth + 1

    def _mapping(self, value: Mapping[object, object], depth: int) -> Json:
        depth = self._deeper(depth)
        plain = {self._key(key, depth): self.visit(item, depth) for key, item in value.items()}
        if self._strict and len(plain) < len(value):
            raise ValueRejected(
                "A tool argument holds a dict with keys that are the same text, such as 1 and '1'."
            )
        return plain

    def _sequence(self, value: Any, depth: int) -> Json:
        depth = self._deeper(depth)
        return [self.visit(item, depth) for item in value]

    def _key(self, key: object, depth: int) -> str:
        """Keys become text as `json.dumps` would make them."""
        if type(key) is str:
            return self._text(key)
        plain = self.visit(key, depth)
        return plain if isinstance(plain, str) else json.dumps(plain)

    def _text(self, text: str) -> str:
        self._spend(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")))
        return text

    def _integer(self, value: int) -> Json:
        bits = value.bit_length()
        if bits > _MAX_INT_BITS:
            return self._foreign("an integer of over a thousand digits", "<huge integer>")
        self._spend(max(8, bits // 3))  # as many as it has digits
        return value

    def _float(self, value: float) -> Json:
        if math.isfinite(value):
            return value
        return self._foreign(f"{value!r}, which JSON cannot carry", repr(value))

    def _uncommon(self, value: object, depth: int) -> Json:
        if isinstance(value, set | frozenset):
            return self._sequence(self._in_order(value), depth)
        if isinstance(value, tuple):
            names = () if self._strict else getattr(value, "_fields", ())
            if names:
                return self._mapping(dict(zip(names, value, strict=True)), depth)
            return self._sequence(value, depth)
        if isinstance(value, str):
            return self.visit(str(value), depth)
        if isinstance(value, bytes):
            return self._foreign(
                f"{len(value):,} bytes; tools take text, so decode or base64-encode them",
                f"<{len(value):,} bytes>",
            )
        for kinds, as_text in _AS_TEXT:
            if isinstance(value, kinds):
                return self.visit(as_text(value), depth)
        return self._object(value, depth)

    def _in_order(self, values: set[object] | frozenset[object]) -> Collection[object]:
        """Sort text and numbers, so that equal code sends equal arguments; sets have no order."""
        kinds = {type(each) for each in values} if len(values) <= self._budget.nodes else {object}
        if kinds <= {str} or kinds <= {int, float}:
            return sorted(values)  # type: ignore[type-var]
        return values

    def _object(self, value: object, depth: int) -> Json:
        if isinstance(value, BaseException):
            kind = type(value).__name__
            return self._foreign(f"an exception, {kind}; use str(...) of it", f"{kind}: {value}")
        attributes = getattr(value, "attributes", None)
        name = getattr(value, "name", None) or getattr(value, "__name__", None)
        if isinstance(attributes, dict) and (attributes or not self._strict):
            plain = self._mapping(attributes, depth)
            return plain if self._strict else {self._text(str(name)): plain}
        shown = f"<{name}>" if isinstance(name, str) else f"<{type(value).__name__}>"
        return self._foreign(f"{shown}, which is not data", shown)

    def _foreign(self, what: str, shown: str) -> Json:
        if self._strict:
            raise ValueRejected(f"A tool argument holds {what}.")
        return self._text(shown)


_AS_TEXT: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    ((datetime, date, time), lambda value: str(value.isoformat())),
    ((Decimal, PurePath, timedelta), str),
)
