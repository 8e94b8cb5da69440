"""Records of a file, one after the other, without ever holding the file. Pure but for reading.

A JSON list gives its items, JSON lines and other texts their lines, CSV its rows as dicts.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, Final, Literal

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject
from toolfold.workspace.jsonstream import DEPTH, RECORD_CHARS, TOO_DEEP, JsonStream

RecordKind = Literal["json", "json lines", "csv", "text", "binary"]

_COLUMNS: Final = 16_384  # as many as a spreadsheet has
_HEAD_BYTES: Final = 65_536
_SPACE: Final = " \t\n\r"
_REST: Final = "_rest"


def kind_of(file: BinaryIO, name: str) -> RecordKind:
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
        text = _dumped(record)
        if text is None:
            raise BadInput(f"Record {start + len(taken):,} is {TOO_DEEP}.")
        size += len(text)
        if size > max_chars:
            raise BadInput(
                f"{len(taken) + 1:,} records from {start:,} on have more than {max_chars:,} "
                f"characters: ask for a `limit` of {max(1, len(taken) // 2):,}."
            )
        taken.append(record)
    return taken


def _dumped(record: Json) -> str | None:
    """Return a record as JSON; None if it is nested too deeply."""
    try:
        text = json.dumps(record)
    except RecursionError:
        return None
    if text.count("[") + text.count("{") <= DEPTH:
        return text
    level = [record]
    for _ in range(DEPTH + 1):
        level = [part for each in level for part in _parts(each)]
    return None if level else text


def _parts(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _lines(file: BinaryIO) -> Iterator[str]:
    first = True
    while line := file.readline(RECORD_CHARS + 1):
        if len(line) > RECORD_CHARS:
            raise BadInput(
                f"A line of the file has more than {RECORD_CHARS:,} bytes: "
                "use workspace.read(path, offset, size)."
            )
        yield line.decode("utf-8-sig" if first else "utf-8", "replace")
        first = False


def _rows(file: BinaryIO, name: str) -> Iterator[Json]:
    """Yield rows as dicts that have every column; what a row has beyond them is in `_rest`."""
    held = 0

    def lines() -> Iterator[str]:
        nonlocal held
        for line in _lines(file):
            held += len(line)
            if held > RECORD_CHARS:  # quotes can hold a row open to the end of the file
                raise BadInput(f"A row of {name} has more than {RECORD_CHARS:,} characters.")
            yield line

    delimiter = "\t" if name.lower().endswith(".tsv") else ","
    rows = csv.reader(lines(), delimiter=delimiter)
    try:
        columns = next(rows, [])
        if len(columns) > _COLUMNS:
            raise BadInput(f"{name} has {len(columns):,} columns; {_COLUMNS:,} columns are read.")
        for row in rows:
            held = 0
            if row:
                yield _as_dict(columns, row)
    except csv.Error as error:
        raise BadInput(f"{name} is no CSV: {error}.") from error


def _as_dict(columns: list[str], row: list[str]) -> JsonObject:
    found: JsonObject = dict(zip(columns, row, strict=False))
    if len(row) < len(columns):
        return dict.fromkeys(columns) | found
    if len(row) > len(columns):
        found[_REST] = list(row[len(columns) :])
    return found


def _parsed(line: str, number: int) -> Json:
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"Line {number:,} is not valid JSON.") from error
    return value
