"""What a file or a value is, in few words. Pure but for reading."""

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import BinaryIO, Final

from toolfold.jsontypes import Json, JsonObject
from toolfold.workspace.jsonstream import JsonStream
from toolfold.workspace.records import kind_of, records

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
