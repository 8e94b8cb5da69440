"""JSON from the daemon into the types that scripts work with. Pure."""

from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from toolfold.memory.models import (
    CompactHealthInfo,
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    Link,
    Note,
)

_T = TypeVar("_T")


def text(value: Any) -> str:
    """Read a text."""
    return str(value)


def texts(value: Any) -> tuple[str, ...]:
    """Read texts."""
    return tuple(map(str, value))


def number(value: Any) -> int:
    """Read a number."""
    return int(value)


def found(value: Any) -> CompactSearchResult:
    """Read the result of one search."""
    memories = tuple(map(_memory, value["memories"]))
    return CompactSearchResult(memories, value["total"], value["query"])


def all_found(value: Any) -> tuple[CompactSearchResult, ...]:
    """Read the results of several."""
    return tuple(map(found, value))


def note(value: Any) -> Note:
    """Read a whole note."""
    links = tuple(Link(**link) for link in value["links"])
    return Note(**{**value, "tags": tuple(value["tags"]), "links": links})


def notes(value: Any) -> tuple[Note, ...]:
    """Read several."""
    return tuple(map(note, value))


def health(value: Any) -> CompactHealthInfo:
    """Read how the memory is."""
    return CompactHealthInfo(**value)


def _memory(value: Any) -> CompactMemory | ExplainedMemory:
    fields = {**value, "tags": tuple(value["tags"])}
    return ExplainedMemory(**fields) if "why" in fields else CompactMemory(**fields)


def read(kind: type[_T], value: Any) -> _T:
    """Read a named tuple or one of our classes, and all that is in it."""
    answer: _T = _read(kind, value)
    return answer


def _read(kind: Any, value: Any) -> Any:
    parts = get_args(kind)
    if value is None or kind is Any:
        return value
    if get_origin(kind) is tuple:
        return tuple(_read(parts[0], each) for each in value)
    if get_origin(kind) in (Union, UnionType):
        return _read(next(part for part in parts if part is not type(None)), value)
    if hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__"):
        hints = _hints(kind)
        return kind(**{name: _read(hints[name], each) for name, each in value.items()})
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, localns={"Json": Any})
