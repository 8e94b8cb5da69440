"""JSON from the daemon into the types that scripts work with. Pure."""

from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from toolfold.memory.compact import (
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


def events(value: Any) -> "kinds.CompactEvents":
    """Read events in a line each."""
    from toolfold.api.kinds import CompactEvents

    return read(CompactEvents, value)


def event(value: Any) -> "kinds.Event":
    """Read a whole event."""
    from toolfold.api.kinds import Event

    return read(Event, value)


def consolidated(value: Any) -> "kinds.Consolidated":
    """Read what a consolidation did."""
    from toolfold.api.kinds import Consolidated

    return read(Consolidated, value)


def undone(value: Any) -> "kinds.Undone":
    """Read what undoing one did."""
    from toolfold.api.kinds import Undone

    return read(Undone, value)


def ingested(value: Any) -> "kinds.Ingested":
    """Read what became of files."""
    from toolfold.api.kinds import Ingested

    return read(Ingested, value)


def documents(value: Any) -> "kinds.CompactDocuments":
    """Read documents in a line each."""
    from toolfold.api.kinds import CompactDocuments

    return read(CompactDocuments, value)


def entity(value: Any) -> "kinds.Entity":
    """Read an entity."""
    from toolfold.api.kinds import Entity

    return read(Entity, value)


def graph_found(value: Any) -> "kinds.GraphSearchResult":
    """Read what a search in the graph found."""
    from toolfold.api.kinds import GraphSearchResult

    return read(GraphSearchResult, value)


def exported(value: Any) -> "kinds.Exported":
    """Read what was written."""
    from toolfold.api.kinds import Exported

    return read(Exported, value)


def imported(value: Any) -> "kinds.Imported":
    """Read what was taken over."""
    from toolfold.api.kinds import Imported

    return read(Imported, value)


def consolidations(value: Any) -> "tuple[kinds.PastConsolidation, ...]":
    """Read the consolidations that were made."""
    from toolfold.api.kinds import PastConsolidation

    return tuple(read(PastConsolidation, each) for each in value)


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
