"""Read CSV and JSON: every row and every value is said with its name."""

import csv
import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

from toolfold.memory.documents.kinds import Blocks, DocumentContent, Unreadable, decoded

_SNIFFED_CHARS: Final = 16_384
_MAX_FIELD_CHARS: Final = 1_000_000
_MAX_NAME_CHARS: Final = 100


def read_csv(content: bytes) -> DocumentContent:
    """Return each row as `column: value; column: value`, by the names in the first.

    Raises:
        Unreadable: It cannot be told apart into rows.
    """
    text = decoded(content)
    csv.field_size_limit(_MAX_FIELD_CHARS)
    blocks = Blocks()
    try:
        rows = csv.reader(text.splitlines(keepends=True), _dialect(text))
        names = next(rows, [])
        is_all = True
        for row in rows:
            is_all = False
            blocks.add(_row(names, row))
    except csv.Error as error:
        raise Unreadable(f"It is not CSV: {error}.") from error
    if is_all:
        blocks.add("; ".join(names))
    return DocumentContent(blocks.found)


def _dialect(text: str) -> type[csv.Dialect]:
    head = text[:_SNIFFED_CHARS]
    counts = {mark: head.partition("\n")[0].count(mark) for mark in ",;\t|"}
    best = max(counts, key=lambda mark: counts[mark])

    class Found(csv.excel):
        delimiter = best

    return Found


def _row(names: list[str], row: list[str]) -> str:
    said = (
        f"{name.strip()[:_MAX_NAME_CHARS]}: {value.strip()}" if name and name.strip() else value
        for name, value in zip_longest(names, row, fillvalue="")
        if value.strip()
    )
    return "; ".join(said) + "\n"


def read_json(content: bytes) -> DocumentContent:
    """Return each value with the way to it: `servers[0].name: main`. JSON lines are read too.

    Raises:
        Unreadable: It is not JSON.
    """
    blocks = Blocks()
    for top in _documents(decoded(content)):
        elements = enumerate(top) if isinstance(top, list) else [(None, top)]
        for number, element in elements:
            start = "" if number is None else f"[{number}]"
            blocks.add("".join(f"{line}\n" for line in _lines(element, start)))
    return DocumentContent(blocks.found)


def _documents(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0]):
            raise Unreadable(f"It is not JSON, or only a part of it: {error}.") from error
        for number, line in enumerate(lines, start=1):
            try:
                yield json.loads(line, parse_int=str, parse_float=str)
            except (ValueError, RecursionError) as fault:
                raise Unreadable(f"Its line {number} is not JSON: {fault}.") from fault


def _is_json(line: str) -> bool:
    try:
        json.loads(line, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def _lines(value: Any, start: str) -> Iterator[str]:
    """Walk without recursion: a file may be nested deeper than Python is."""
    waiting: list[tuple[str, Any]] = [(start, value)]
    while waiting:
        name, found = waiting.pop()
        if isinstance(found, dict) and found:
            inner = [(f"{name}.{key}" if name else key, each) for key, each in found.items()]
            waiting.extend(reversed(inner))
        elif isinstance(found, list) and found:
            inner = [(f"{name}[{number}]", each) for number, each in enumerate(found)]
            waiting.extend(reversed(inner))
        else:
            yield f"{name}: {_said(found)}" if name else _said(found)


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)
