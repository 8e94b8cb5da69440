"""Learn what tools return from what they returned.

Three quarters of real tools declare no output schema. A shape is what their results had in common:
kinds of values and names of keys, never the values themselves. Shapes are merged over calls, and
bounded, so that no result makes them large.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolfold.jsontypes import Json, JsonObject

_DEEPEST: Final = 4
_MAX_KEYS: Final = 24
_MAX_ITEMS: Final = 20
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_KINDS: Final[Mapping[type, str]] = {
    str: "str",
    bool: "bool",
    int: "int",
    float: "float",
    type(None): "None",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of the values in one place."""

    kinds: frozenset[str] = frozenset()
    """Of `str`, `int`, `float`, `bool`, `None`, `list`, `dict`, `map` and `Any`."""
    keys: Mapping[str, "Shape"] = field(default_factory=dict)
    """Of dicts: each key that was seen."""
    sometimes: frozenset[str] = frozenset()
    """Those keys that some dicts lacked."""
    items: "Shape | None" = None
    """Of lists and maps: what they hold, all together."""


_ANY: Final = Shape(frozenset({"Any"}))


def shape_of(value: Json, depth: int = 0) -> Shape:
    """Return the shape of one value. Long lists are judged by their first items."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return Shape(frozenset({kind}))
    if depth >= _DEEPEST:
        return Shape(frozenset({"list" if isinstance(value, list) else "dict"}))
    if isinstance(value, list):
        items = [shape_of(item, depth + 1) for item in value[:_MAX_ITEMS]]
        return Shape(frozenset({"list"}), items=merged(items))
    if isinstance(value, dict):
        return _dict_shape(value, depth)
    return _ANY


def _dict_shape(value: JsonObject, depth: int) -> Shape:
    """A dict with names for keys is a record; one with data for keys is a map."""
    if len(value) <= _MAX_KEYS and all(map(_KEY.fullmatch, value)):
        keys = {key: shape_of(item, depth + 1) for key, item in value.items()}
        return Shape(frozenset({"dict"}), keys=keys)
    items = [shape_of(item, depth + 1) for item in list(value.values())[:_MAX_ITEMS]]
    return Shape(frozenset({"map"}), items=merged(items))


def merged(shapes: list[Shape]) -> Shape | None:
    """Return what all the shapes have in common; None if there are none."""
    result: Shape | None = None
    for shape in shapes:
        result = shape if result is None else merge(result, shape)
    return result


def merge(a: Shape, b: Shape) -> Shape:
    """Return a shape that fits whatever fits `a` or `b`. Equal shapes stay as they are."""
    if a == b:
        return a
    items = merged([shape.items for shape in (a, b) if shape.items is not None])
    kinds = a.kinds | b.kinds
    if {"dict", "map"} <= kinds or len(a.keys.keys() | b.keys.keys()) > _MAX_KEYS:
        everything = [*a.keys.values(), *b.keys.values(), *([items] if items else [])]
        return Shape((kinds - {"dict"}) | {"map"}, items=merged(everything))
    keys = {
        key: merge(a.keys.get(key, b.keys.get(key, _ANY)), b.keys.get(key, a.keys.get(key, _ANY)))
        for key in [*a.keys, *(key for key in b.keys if key not in a.keys)]
    }
    sometimes = a.sometimes | b.sometimes
    if "dict" in a.kinds and "dict" in b.kinds:
        sometimes |= a.keys.keys() ^ b.keys.keys()
    return Shape(kinds, keys=keys, sometimes=sometimes, items=items)


def render(shape: Shape) -> str:
    """Return a shape as one line: `list[{number: int, title: str, body?: str | None}]`."""
    alternatives = [_render_kind(kind, shape) for kind in sorted(shape.kinds, key=_rank)]
    return " | ".join(alternatives) or "Any"


def render_short(shape: Shape) -> str:
    """Return a shape as a plain type: `list[dict]`."""
    texts = []
    for kind in sorted(shape.kinds, key=_rank):
        inner = render_short(shape.items) if shape.items else ""
        if kind == "list" and inner and " | " not in inner and "[" not in inner:
            texts.append(f"list[{inner}]")
        else:
            texts.append("dict" if kind == "map" else kind)
    return " | ".join(texts) or "Any"


def _rank(kind: str) -> tuple[bool, str]:
    return kind == "None", kind


def _render_kind(kind: str, shape: Shape) -> str:
    inner = render(shape.items) if shape.items else "Any"
    match kind:
        case "list":
            return f"list[{inner}]"
        case "map":
            return f"dict[str, {inner}]"
        case "dict" if shape.keys:
            fields = (
                f"{key}{'?' if key in shape.sometimes else ''}: {render(item)}"
                for key, item in shape.keys.items()
            )
            return f"{{{', '.join(fields)}}}"
        case _:
            return kind


def to_json(shape: Shape) -> JsonObject:
    """Return a shape as JSON."""
    entry: JsonObject = {"kinds": [*sorted(shape.kinds)]}
    if shape.keys:
        entry["keys"] = {key: to_json(item) for key, item in shape.keys.items()}
    if shape.sometimes:
        entry["sometimes"] = [*sorted(shape.sometimes)]
    if shape.items:
        entry["items"] = to_json(shape.items)
    return entry


def from_json(entry: Any) -> Shape:
    """Return the shape that `to_json` wrote. Raises ValueError, TypeError or KeyError if none."""
    return Shape(
        frozenset(map(str, entry["kinds"])),
        keys={str(key): from_json(item) for key, item in entry.get("keys", {}).items()},
        sometimes=frozenset(map(str, entry.get("sometimes", ()))),
        items=from_json(entry["items"]) if "items" in entry else None,
    )
