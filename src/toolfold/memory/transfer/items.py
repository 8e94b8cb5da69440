"""Tell what a file of memory is, and what stands in it, whichever program's it is."""

import os
import tempfile
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from toolfold.errors import BadInput, NotFound, StoreDamaged, StoreError
from toolfold.jsontypes import JsonObject
from toolfold.memory.graph.models import Fault
from toolfold.memory.models import Event
from toolfold.memory.transfer.conversations import (
    is_transcript,
    measure_conversations,
    read_conversations,
    read_transcript,
    tell_conversations,
)
from toolfold.memory.transfer.memory_service import (
    count_memories,
    is_memory_service,
    read_memories,
)
from toolfold.memory.transfer.models import Source
from toolfold.memory.transfer.records import (
    FORMAT,
    MAX_LINE_BYTES,
    VERSION,
    ArchiveRecord,
    NoteRecord,
    VersionRecord,
    parse_line,
    read_record,
)
from toolfold.storage.foreign import open_foreign


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
    if source in ("chatgpt", "claude"):
        return measure_conversations(path)
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
    elif source in ("chatgpt", "claude"):
        yield from (Item(*each) for each in read_conversations(path, source, now=now))
    elif source == "claude-code":
        yield from (Item(*each) for each in read_transcript(_lines(path), now=now))
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


_SQLITE: Final = b"SQLite format 3\0"
_ZIP: Final = b"PK"
_KNOWN: Final = (
    "an export of toolfold, the JSON lines of server-memory, a SQLite database of "
    "mcp-memory-service, the zip that ChatGPT or Claude exports, or a transcript of Claude Code"
)


def tell_source(path: Path) -> Source:
    """Return which program's memory a file is.

    Raises:
        NotFound: There is no such file.
        BadInput: It is none that can be imported.
    """
    try:
        if not path.is_file():
            raise NotFound(f"There is no file {path}.")
        with path.open("rb") as file:
            if file.peek(len(_SQLITE)).startswith(_SQLITE):
                return _in_database(path)
            if file.peek(1).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((_ZIP, b"[")):
                return _in_conversations(path)
            line = b"\n"
            while line and not line.strip():
                line = file.readline(MAX_LINE_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error
    return _in_line(line, path)


def _in_database(path: Path) -> Source:
    try:
        with open_foreign(path) as connection:
            if is_memory_service(connection):
                return "mcp-memory-service"
    except StoreDamaged as error:
        raise BadInput(f"The database {path} is damaged: {error.__cause__}.") from error
    raise BadInput(f"{path} is a database of another kind. What can be imported is {_KNOWN}.")


def _in_conversations(path: Path) -> Source:
    found = tell_conversations(path)
    if found is None:
        raise BadInput(f"{path} holds no conversations. What can be imported is {_KNOWN}.")
    return found


def _in_line(line: bytes, path: Path) -> Source:
    if not line.strip():
        raise BadInput(f"{path} is empty.")
    try:
        value = parse_line(line.removeprefix(b"\xef\xbb\xbf"))
    except BadInput as error:
        raise BadInput(f"{path} is not recognized. Supported are: {_KNOWN}.") from error
    if value.get("format") == FORMAT:
        version = value.get("version")
        if not isinstance(version, int) or not 1 <= version <= VERSION:
            raise BadInput(f"A newer toolfold exported {path}. Update this one.")
        return "toolfold"
    if value.get("type") in ("entity", "relation"):
        return "server-memory"
    if is_transcript(value):
        return "claude-code"
    raise BadInput(f"{path} is JSON of another kind. What can be imported is {_KNOWN}.")


class NewFile:
    """A file that takes its place when it is finished; until then, what was there stays.

    Nobody but the user can read it.

    Raises:
        BadInput: Its place is one where no export belongs.
        StoreError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines = 0
        self.size = 0
        if path.is_dir() or _is_database(path):
            raise BadInput(f"{path} is a folder or a database. Name another file to export to.")
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise self._failed(error) from error
        self._partial = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    def write(self, line: str) -> None:
        """Write a line."""
        try:
            self.size += self._file.write(line.encode() + b"\n")
            self.lines += 1
        except OSError as error:
            raise self._failed(error) from error

    def finish(self) -> None:
        """Put the file in its place; it is on the disk when this returns."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._partial.replace(self._path)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Leave nothing behind, unless it is finished."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(f"{self._path} cannot be written: {error.strerror or error}.")


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
