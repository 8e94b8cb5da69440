"""Records of a file, one after the other, without ever holding the file. Pure but for reading.

A JSON list gives its items, JSON lines and other texts their lines, CSV its rows as dicts.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
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


_KEYS: Final = 20
_KEY_CHARS: Final = 60
_TEXT_CHARS: Final = 80
_ITEMS: Final = 3
_DEPTH: Final = 2
_SAMPLE_CHARS: Final = 400


def shape_of_file(file: BinaryIO, name: str) -> JsonObject:
    """Return the type of a file, its length, its keys or columns, and a sample.

    Raises:
        BadInput: It is not what its beginning says.
    """
    kind = kind_of(file, name)
    if kind == "json":
        file.seek(0)
        stream = JsonStream(file)
        if stream.is_object:
            return _shape_of_object(stream.shape())
    if kind == "binary":
        return {"type": kind}
    told = "list" if kind == "json" else kind
    return {"type": told, **_shape_of_records(records(file, name), kind)}


def shape_of_value(value: Json) -> JsonObject:
    """Return the same of a value."""
    if isinstance(value, list):
        return {"type": "list", **_shape_of_records(iter(value), "json")}
    if isinstance(value, dict):
        told: Iterator[tuple[str, Json]] = ((key, _told(part)) for key, part in value.items())
        return _shape_of_object(told)
    if isinstance(value, str):
        lines = iter(value.splitlines())
        return {"type": "text", **_shape_of_records(lines, "text")}
    return {"type": type(value).__name__}


def shortened(value: Json, depth: int = _DEPTH) -> Json:
    """Return a value with its long parts cut off."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT_CHARS else f"{value[:_TEXT_CHARS]}…"
    if isinstance(value, list):
        if depth == 0:
            return f"list of {len(value):,}"
        rest = [f"… {len(value) - _ITEMS:,} more"] if len(value) > _ITEMS else []
        return [*(shortened(part, depth - 1) for part in value[:_ITEMS]), *rest]
    if isinstance(value, dict):
        if depth == 0:
            return f"dict of {len(value):,}"
        parts = islice(value.items(), _KEYS)
        return {key[:_KEY_CHARS]: shortened(part, depth - 1) for key, part in parts}
    return value


def _shape_of_records(found: Iterator[Json], kind: str) -> JsonObject:
    begun = list(islice(found, 1))
    shape: JsonObject = {"length": sum(1 for _ in chain(begun, found))}
    if not begun:
        return shape
    first = begun[0]
    if isinstance(first, dict):
        shape["columns" if kind == "csv" else "keys"] = _names(iter(first))
    shape["sample"] = _sample(first)
    return shape


def _shape_of_object(parts: Iterator[tuple[str, Json]]) -> JsonObject:
    keys: JsonObject = {}
    length = 0
    for key, told in parts:
        length += 1
        if length <= _KEYS:
            keys[key[:_KEY_CHARS]] = shortened(told, 0)
    return {"type": "dict", "length": length, "keys": keys}


def _told(part: Json) -> Json:
    if isinstance(part, list | dict):
        return f"{'list' if isinstance(part, list) else 'dict'} of {len(part):,}"
    return part


def _names(keys: Iterator[str]) -> list[Json]:
    return [key[:_KEY_CHARS] for key in islice(keys, _KEYS)]


def _sample(record: Json) -> Json:
    sample = shortened(record)
    text = json.dumps(sample, ensure_ascii=False)
    return sample if len(text) <= _SAMPLE_CHARS else f"{text[:_SAMPLE_CHARS]}…"
