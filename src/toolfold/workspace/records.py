"""Records of a file, one after the other, without ever holding the file. Pure but for reading.

A JSON list gives its items, JSON lines and other texts their lines, CSV its rows as dicts.
"""

import codecs
import csv
import json
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Final, Literal

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject

Kind = Literal["json", "json lines", "csv", "text", "binary"]

_CHUNK_BYTES: Final = 1 << 18
_RECORD_CHARS: Final = 8 << 20
_HEAD_BYTES: Final = 65_536
_SPACE: Final = " \t\n\r"
_REST: Final = "_rest"


def kind_of(file: BinaryIO, name: str) -> Kind:
    """Tell what a file holds, by its name and its beginning."""
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    if b"\0" in head:
        return "binary"
    suffix = name.rpartition(".")[2].lower()
    if suffix in {"csv", "tsv"}:
        return "csv"
    if suffix in {"jsonl", "ndjson"}:
        return "json lines"
    text = head.decode("utf-8-sig", "replace").lstrip(_SPACE)
    if text[:1] not in {"{", "["}:
        return "text"
    return "json lines" if _is_lines(text) else "json"


def _is_lines(text: str) -> bool:
    """Whether the first line is a value by itself, and another begins after it."""
    line, _, rest = text.partition("\n")
    if not rest.strip(_SPACE):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def records(file: BinaryIO, name: str, at: str | None = None) -> Iterator[Json]:
    """Yield the records of a file; `at` names the list in an object, as in `data.rows`.

    Raises:
        BadInput: It is not what its beginning says, or one record is too large.
    """
    kind = kind_of(file, name)
    file.seek(0)
    if kind == "json":
        return JsonStream(file).list_at(at.split(".") if at else [])
    if at:
        raise BadInput(f"{name} is {kind}, which has no parts: leave `at` out.")
    if kind == "csv":
        return _rows(file, name)
    if kind == "json lines":
        return (
            _parsed(line, number) for number, line in enumerate(_lines(file), 1) if line.strip()
        )
    if kind == "binary":
        raise BadInput(f"{name} is binary: open it with open(path, 'rb').")
    return (line.rstrip("\r\n") for line in _lines(file))


def count(file: BinaryIO, name: str, at: str | None = None) -> int:
    """Return how many records a file has."""
    return sum(1 for _ in records(file, name, at))


def page(found: Iterator[Json], start: int, limit: int, *, max_chars: int) -> list[Json]:
    """Return `limit` records from the one numbered `start` on.

    Raises:
        BadInput: They are more than can be had at once.
    """
    taken: list[Json] = []
    size = 0
    for record in islice(found, start, start + limit):
        size += len(json.dumps(record))
        if size > max_chars:
            raise BadInput(
                f"{len(taken) + 1:,} records from {start:,} on have more than {max_chars:,} "
                f"characters: ask for a `limit` of {max(1, len(taken) // 2):,}."
            )
        taken.append(record)
    return taken


class JsonStream:
    """JSON read through a window, which holds one record and a little more."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
        self._text = ""
        self._at = 0
        self._passed = 0
        self._is_over = False

    def list_at(self, names: list[str]) -> Iterator[Json]:
        """Yield the items of the list that `names` lead to.

        Raises:
            BadInput: There is no list.
        """
        seen: list[str] = []
        for name in names:
            if not self._find(name, seen):
                told = ", ".join(map(repr, seen[:20])) or "none"
                raise BadInput(f"There is no {name!r} in the file. Its keys there: {told}.")
        if self._next() == "{":
            keys = [key for key, _ in self.shape()][:20]
            told = ", ".join(map(repr, keys))
            raise BadInput(f"It is an object, not a list: say which with at=…. Its keys: {told}.")
        if self._next() != "[":
            raise BadInput("There is no list of records in the file.")
        return self._items()

    def shape(self) -> Iterator[tuple[str, Json]]:
        """Yield the keys of an object and, of what is not large, its values; lists as lengths."""
        for key in self._keys():
            opening = self._next()
            if opening == "[":
                yield key, f"list of {sum(1 for _ in self._items()):,}"
            elif opening == "{":
                yield key, f"dict of {sum(1 for _ in self.shape()):,}"
            else:
                yield key, self._value()

    @property
    def is_object(self) -> bool:
        """Whether an object begins here."""
        return self._next() == "{"

    @property
    def is_list(self) -> bool:
        """Whether a list begins here."""
        return self._next() == "["

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""
        return not self._next()

    @property
    def place(self) -> int:
        """Up to which character it was read."""
        return self._passed + self._at

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; each value is to be read in between."""
        return self._keys()

    def items(self) -> Iterator[Json]:
        """Yield the items of the list that begins here."""
        return self._items()

    def value(self) -> Json:
        """Return the value that begins here, whole."""
        return self._value()

    def _find(self, name: str, seen: list[str]) -> bool:
        if self._next() != "{":
            return False
        for key in self._keys():
            if key == name:
                return True
            seen.append(key)
            self._skip()
        return False

    def _keys(self) -> Iterator[str]:
        self._take("{")
        if self._next() == "}":
            self._take("}")
            return
        while True:
            key = self._value() if self._next() == '"' else None
            if not isinstance(key, str):
                raise self._malformed()
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def _items(self) -> Iterator[Json]:
        self._take("[")
        if self._next() == "]":
            self._take("]")
            return
        while True:
            yield self._value()
            if self._take(",]") == "]":
                return

    def _skip(self) -> None:
        opening = self._next()
        if opening == "[":
            for _ in self._items():
                pass
        elif opening == "{":
            for _ in self.shape():
                pass
        else:
            self._value()

    def _value(self) -> Json:
        self._next()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError as error:
                raise BadInput("A record of the file is nested too deeply.") from error
            except (ValueError, StopIteration) as error:
                if not self._read():
                    raise self._malformed() from error
            else:
                if not self._may_go_on(value, end) or not self._read():
                    self._at = end
                    found: Json = value
                    return found

    def _may_go_on(self, value: Json, end: int) -> bool:
        """Whether a number was cut off by the window, as 1.5 is behind the 1 or the point."""
        is_number = isinstance(value, int | float)
        return end == len(self._text) or (is_number and self._text[end] in ".eE")

    def _next(self) -> str:
        """Return the next character that is no space; none at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._read():
                return ""

    def _take(self, expected: str) -> str:
        found = self._next()
        if not found or found not in expected:
            raise self._malformed()
        self._at += 1
        return found

    def _read(self) -> bool:
        """Read on, as much again as is held; False at the end."""
        if self._is_over:
            return False
        held = len(self._text) - self._at
        if held > _RECORD_CHARS:
            raise BadInput(f"A record of the file has more than {_RECORD_CHARS:,} characters.")
        content = self._file.read(max(_CHUNK_BYTES, held))
        self._is_over = not content
        self._passed += self._at
        self._text = self._text[self._at :] + self._decode(content, self._is_over)
        self._at = 0
        return bool(content)

    def _malformed(self) -> BadInput:
        return BadInput(f"The file is no JSON from character {self._passed + self._at:,} on.")


def _lines(file: BinaryIO) -> Iterator[str]:
    first = True
    while line := file.readline(_RECORD_CHARS + 1):
        if len(line) > _RECORD_CHARS:
            raise BadInput(
                f"A line of the file has more than {_RECORD_CHARS:,} bytes: "
                "use workspace.read(path, offset, size)."
            )
        yield line.decode("utf-8-sig" if first else "utf-8", "replace")
        first = False


def _rows(file: BinaryIO, name: str) -> Iterator[Json]:
    delimiter = "\t" if name.lower().endswith(".tsv") else ","
    try:
        for row in csv.DictReader(_lines(file), delimiter=delimiter, restkey=_REST):
            found: JsonObject = dict(row)
            yield found
    except csv.Error as error:
        raise BadInput(f"{name} is no CSV: {error}.") from error


def _parsed(line: str, number: int) -> Json:
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"Line {number:,} is no JSON.") from error
    return value
