"""The forms in which values of memory leave it: for guest code, as JSON, as text to read. Pure."""

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from toolfold.jsontypes import Json, plain
from toolfold.memory.models import Note


def as_named(value: Any) -> Any:
    """Return a value with plain named tuples in place of our own classes, for guest code."""
    if is_dataclass(value) and not isinstance(value, type):
        names = tuple(each.name for each in fields(value))
        parts = [as_named(getattr(value, name)) for name in names]
        return _named(type(value).__name__, names)(*parts)
    if isinstance(value, tuple):
        parts = [as_named(each) for each in value]
        names = getattr(value, "_fields", ())
        return _named(type(value).__name__, names)(*parts) if names else tuple(parts)
    if isinstance(value, list):
        return [as_named(each) for each in value]
    return value


@cache
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields, module="__main__")  # the name alone is shown


def as_json(value: Any) -> Json:
    """Return a value as JSON has it: objects for named tuples."""
    return plain(as_named(value))


def as_text(value: Any) -> str:
    """Return a value as a model or a person reads it."""
    if isinstance(value, Note):
        return _whole(value)
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return "\n".join(map(as_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else repr(value)


def _whole(note: Note) -> str:
    """Return the whole of a note: a line for each thing that is said of it, then its content."""
    about: Mapping[str, object] = {
        "type": note.type,
        "tags": ", ".join(note.tags),
        "created": _time(note.created),
        "updated": _time(note.updated) if note.version > 1 else "",
        "version": note.version if note.version > 1 else "",
        "source": note.source,
        "thread": note.thread,
        "position": note.position,
        "metadata": note.metadata or "",
        "quality": f"{note.quality:.2f}",
        "links": ", ".join(f"{link.kind} {link.hash[:8]}" for link in note.links),
    }
    lines = [f"{name}: {said}" for name, said in about.items() if said not in ("", None)]
    return "\n".join([f"note {note.hash[:8]}", *lines, "", note.content])


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g}"
