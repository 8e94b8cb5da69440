"""JSON from the daemon into the types that scripts work with. Pure."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from toolfold.jsontypes import typed
from toolfold.memory.models import (
    CompactHealthInfo,
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
)

# What a search does not need comes when it is needed.
if TYPE_CHECKING:
    from toolfold.api import kinds

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


def note(value: Any) -> "kinds.Note":
    """Read a whole note."""
    from toolfold.memory.models import Link, Note

    links = tuple(Link(**link) for link in value["links"])
    return Note(**{**value, "tags": tuple(value["tags"]), "links": links})


def notes(value: Any) -> "tuple[kinds.Note, ...]":
    """Read several."""
    return tuple(map(note, value))


def health(value: Any) -> CompactHealthInfo:
    """Read how the memory is."""
    return CompactHealthInfo(**value)


def _memory(value: Any) -> CompactMemory | ExplainedMemory:
    fields = {**value, "tags": tuple(value["tags"])}
    return ExplainedMemory(**fields) if "why" in fields else CompactMemory(**fields)


def named(module: str, name: str, value: Any) -> Any:
    """Read one of our classes, which is imported only now."""
    return typed(getattr(import_module(module), name), value)


def all_named(module: str, name: str, value: Any) -> Any:
    """Read several."""
    return tuple(named(module, name, each) for each in value)


def read(kind: type[_T], value: Any) -> _T:
    """Read a named tuple or one of our classes, and all that is in it."""
    return typed(kind, value)
