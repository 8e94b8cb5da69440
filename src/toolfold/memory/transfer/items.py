"""What stands in a file of memory, one thing after the other, whichever program's it is."""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from toolfold.errors import BadInput
from toolfold.jsontypes import JsonObject
from toolfold.memory.events.models import Event
from toolfold.memory.graph.models import Fault
from toolfold.memory.transfer.memory_service import count_memories, read_memories
from toolfold.memory.transfer.models import Source
from toolfold.memory.transfer.records import (
    MAX_LINE_BYTES,
    ArchiveRecord,
    NoteRecord,
    VersionRecord,
    parse_line,
    read_record,
)


class GraphLine(NamedTuple):
    """A line of server-memory, which the graph reads."""

    text: str


Thing: TypeAlias = ArchiveRecord | GraphLine | Fault


_MAX_CHARS_AT_ONCE: Final = 16_000_000


class Item(NamedTuple):
    """One thing, and where it stands."""

    line: int
    """From 1; of a database the row."""

    found: Thing
    done: int
    """How much of the file that is, on the scale of `measure`."""


def measure(path: Path, source: Source) -> int:
    """Return how much there is to read: bytes, or rows."""
    return count_memories(path) if source == "mcp-memory-service" else path.stat().st_size


def take_some(items: Iterable[Item], most: int) -> list[Item]:
    """Return the next items, so many or as much text as may be in memory; none at the end."""
    taken = []
    chars = 0
    for item in islice(items, most):
        taken.append(item)
        chars += _length(item.found)
        if chars > _MAX_CHARS_AT_ONCE:
            break
    return taken


def read_items(path: Path, source: Source, *, now: float) -> Generator[Item, None, None]:
    """Give what stands in a file, in order; what cannot be used is a fault with its reason.

    Raises:
        StoreError: A database cannot be read.
        OSError: A file cannot be.
    """
    if source == "mcp-memory-service":
        for number, found in read_memories(path, now=now):
            yield Item(number, found, number)
    elif source == "server-memory":
        for number, line, done in _lines(path):
            yield Item(number, _graph_line(line) or Fault(number, _TOO_LONG), done)
    else:
        yield from _own_items(path)


def _length(found: Thing) -> int:
    match found:
        case NoteRecord() | VersionRecord():
            return len(found.note.content)
        case Event():
            return len(found.content)
        case GraphLine():
            return len(found.text)
    return 0


_TOO_LONG: Final = f"It is longer than {MAX_LINE_BYTES:,} bytes."


def _own_items(path: Path) -> Generator[Item, None, None]:
    ending: object = None
    count = done = 0
    for number, line, done in islice(_lines(path), 1, None):  # the first was looked at already
        value = _parsed(number, line)
        if isinstance(value, dict) and value.get("type") == "end":
            ending = value.get("lines")
            continue
        count += 1
        yield Item(number, _own_thing(number, line, value), done)
    if ending != count:
        reason = "The file is truncated, or lines are missing: it was not exported whole."
        yield Item(0, Fault(0, reason), done)


def _parsed(number: int, line: bytes | None) -> JsonObject | Fault:
    if line is None:
        return Fault(number, _TOO_LONG)
    try:
        return parse_line(line)
    except BadInput as error:
        return Fault(number, str(error))


def _own_thing(number: int, line: bytes | None, value: JsonObject | Fault) -> Thing:
    if isinstance(value, Fault):
        return value
    if value.get("type") in ("entity", "relation"):
        return _graph_line(line) or Fault(number, _TOO_LONG)
    try:
        return read_record(value)
    except BadInput as error:
        return Fault(number, str(error))


def _graph_line(line: bytes | None) -> GraphLine | None:
    return None if line is None else GraphLine(line.decode("utf-8", "replace"))


def _lines(path: Path) -> Iterator[tuple[int, bytes | None, int]]:
    """Give number, line and the bytes up to its end; None for one that is too long."""
    with path.open("rb") as file:
        number = done = 0
        while line := file.readline(MAX_LINE_BYTES):
            done += len(line)
            number += 1
            is_whole = line.endswith(b"\n") or len(line) < MAX_LINE_BYTES
            if not is_whole:
                done += _skip_line(file)
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                yield number, text if is_whole else None, done


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while more := file.readline(MAX_LINE_BYTES):
        skipped += len(more)
        if more.endswith(b"\n"):
            break
    return skipped
