"""Answers as text, so that a resumed run gets them back as they were."""

from collections import namedtuple
from functools import cache
from typing import Any, Final

from toolfold.jsontypes import Json

_TUPLE: Final = "$tuple"


def has_tuples(value: Any) -> bool:
    """Whether JSON alone would not bring a value back; those of our own modules begin with one."""
    return isinstance(value, tuple) or (
        isinstance(value, list) and any(isinstance(each, tuple) for each in value)
    )


def pack(value: Any) -> Json:
    """Return a value as JSON from which `unpack` makes it again."""
    if isinstance(value, tuple):
        fields = list(getattr(value, "_fields", ()))
        return {_TUPLE: [type(value).__name__, fields, [pack(each) for each in value]]}
    if isinstance(value, list):
        return [pack(each) for each in value]
    if isinstance(value, dict):
        packed = {name: pack(each) for name, each in value.items()}
        return {_TUPLE: packed} if _TUPLE in packed else packed
    answer: Json = value
    return answer


def unpack(value: Json) -> Any:
    """Return the value that `pack` was given."""
    if isinstance(value, list):
        return [unpack(each) for each in value]
    if isinstance(value, dict):
        match value.get(_TUPLE) if len(value) == 1 else None:
            case [str(name), list(fields), list(parts)]:
                made = tuple(unpack(each) for each in parts)
                return _kind(name, tuple(map(str, fields)))(*made) if fields else made
            case dict(inner):  # one that only looks like it
                return {name: unpack(each) for name, each in inner.items()}
        return {name: unpack(each) for name, each in value.items()}
    return value


@cache
def _kind(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)  # known only now
