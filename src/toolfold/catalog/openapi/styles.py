"""Values of parameters as they are written: every style of OpenAPI. Pure."""

import json
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from toolfold.jsontypes import Json

# Of the reserved characters, those that cannot end the value or begin another one.
_RESERVED: Final = ":/?@!$'()*,;[]"
_DELIMITERS: Final = {"spaceDelimited": "%20", "pipeDelimited": "|", "tabDelimited": "%09"}


def plain(value: Json) -> str:
    """Return one value as text: numbers and booleans as JSON writes them."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def quoted(value: Json, *, reserved: bool = False) -> str:
    """Return one value as part of a URL."""
    return quote(plain(value), safe=_RESERVED if reserved else "", errors="replace")


def query_pairs(
    name: str, value: Json, style: str, *, explode: bool, reserved: bool = False
) -> Iterator[tuple[str, str]]:
    """Give the pairs of a query or form that stand for a value, both parts quoted."""
    key = quote(name, safe="", errors="replace")
    if style == "deepObject" and isinstance(value, dict | list):
        yield from _deep(key, value, reserved=reserved)
    elif isinstance(value, list):
        items = [quoted(each, reserved=reserved) for each in value]
        if explode:
            yield from ((key, item) for item in items)
        else:
            yield key, _DELIMITERS.get(style, ",").join(items)
    elif isinstance(value, dict):
        pairs = [(quoted(field), quoted(each, reserved=reserved)) for field, each in value.items()]
        if explode:
            yield from pairs
        else:
            parts = [part for pair in pairs for part in pair]
            yield key, _DELIMITERS.get(style, ",").join(parts)
    else:
        yield key, quoted(value, reserved=reserved)


def _deep(key: str, value: Json, *, reserved: bool) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for field, each in value.items():
            yield from _deep(f"{key}[{quoted(field)}]", each, reserved=reserved)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _deep(f"{key}[{number}]", each, reserved=reserved)
    else:
        yield key, quoted(value, reserved=reserved)


def in_path(name: str, value: Json, style: str, *, explode: bool) -> str:
    """Return the part of a path that stands for a value."""
    if style == "matrix":
        return _matrix(quoted(name), value, explode=explode)
    if style == "label":
        return "." + _joined(value, "." if explode else ",", explode=explode)
    return _joined(value, ",", explode=explode)


def in_header(value: Json, *, explode: bool) -> str:
    """Return the text of a header that stands for a value."""
    if isinstance(value, list):
        return ",".join(map(plain, value))
    if isinstance(value, dict):
        between = "=" if explode else ","
        return ",".join(f"{key}{between}{plain(each)}" for key, each in value.items())
    return plain(value)


def _joined(value: Json, delimiter: str, *, explode: bool) -> str:
    if isinstance(value, list):
        return delimiter.join(map(quoted, value))
    if isinstance(value, dict):
        between = "=" if explode else ","
        return delimiter.join(f"{quoted(k)}{between}{quoted(each)}" for k, each in value.items())
    return quoted(value)


def _matrix(key: str, value: Json, *, explode: bool) -> str:
    if isinstance(value, list) and explode:
        return "".join(f";{key}={quoted(each)}" for each in value)
    if isinstance(value, dict) and explode:
        return "".join(f";{quoted(field)}={quoted(each)}" for field, each in value.items())
    return f";{key}={_joined(value, ',', explode=False)}"
