"""What tools were seen to return, kept on disk by the hash of their server's configuration.

Of each tool that is the shape of its answers, and the rule by which their texts are values. Both
hold while the tool is defined as it was. Of tools of some public servers both are known before they
were ever called: the package carries them.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from toolfold.catalog import textrules
from toolfold.catalog.listing import write_whole
from toolfold.catalog.textrules import OPEN, TextRule
from toolfold.catalog.tool import ListedTool
from toolfold.errors import StoreError
from toolfold.jsontypes import Json, JsonObject

# Learn what tools return from what they returned.
#
# Three quarters of real tools declare no output schema. A shape is what their results had in
# common: kinds of values and names of keys, never the values themselves. Shapes are merged over
# calls, and bounded, so that no result makes them large.

_DEEPEST: Final = 4
_MAX_KEYS: Final = 24
_MAX_ITEMS: Final = 20
_SHORT_KEYS_CHARS: Final = 48
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


def render_short(shape: Shape, *, has_keys: bool = True) -> str:
    """Return a shape as a plain type, with keys if they are few: `list[{name, kind?}]`."""
    texts = []
    for kind in sorted(shape.kinds, key=_rank):
        inner = render_short(shape.items, has_keys=has_keys) if shape.items else ""
        if kind == "list" and inner and " | " not in inner and "[" not in inner:
            texts.append(f"list[{inner}]")
        elif kind == "dict" and has_keys:
            texts.append(_short_keys(shape))
        else:
            texts.append("dict" if kind == "map" else kind)
    return " | ".join(texts) or "Any"


def _short_keys(shape: Shape) -> str:
    keys = ", ".join(f"{key}?" if key in shape.sometimes else key for key in shape.keys)
    return f"{{{keys}}}" if keys and len(keys) <= _SHORT_KEYS_CHARS else "dict"


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


_log = logging.getLogger(__name__)

_WELL_KNOWN: Final = 20
_EVERY: Final = 25

SHIPPED: Final = Path(__file__).parents[1] / "assets" / "tool_shapes.json"
"""What tools return that are defined just so; `scripts/record_shapes.py` writes it."""


class ObservedShapes:
    """What the tools of one server were seen to return."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shapes: dict[str, Shape] = {}
        self._rules: dict[str, TextRule] = {}
        self._digests: dict[str, str] = {}
        self._checked: dict[str, ListedTool] = {}
        self._shipped: dict[str, Mapping[str, Any]] = {}
        self._load()
        self._seen: Counter[str] = Counter()
        self._is_changed = False

    def rule(self, tool: ListedTool) -> TextRule:
        """Return the rule by which the texts of a tool are values."""
        self._forget_if_changed(tool)
        return self._rules.get(tool.name, OPEN)

    def example(self, tool: ListedTool) -> str:
        """Return the text that a tool defined just so answered to a recorded call; "" if none."""
        self._forget_if_changed(tool)
        return str(self._shipped[tool.name].get("example", ""))

    def glance(self, tool: ListedTool) -> JsonObject | None:
        """Return the arguments by which a tool defined just so shows what its server has."""
        self._forget_if_changed(tool)
        return self._shipped[tool.name].get("glance")

    def settle(self, tool: ListedTool, rule: TextRule) -> None:
        """Keep the rule as it is after an answer."""
        if rule == self._rules.get(tool.name, OPEN):
            return
        if rule.is_text and tool.name in self._shapes:  # what was a value is a text from now on
            del self._shapes[tool.name]
        self._rules[tool.name] = rule
        self._is_changed = True

    def _forget_if_changed(self, tool: ListedTool) -> None:
        if self._checked.get(tool.name) is tool:
            return
        self._checked[tool.name] = tool
        digest = definition_digest(tool)
        if self._digests.setdefault(tool.name, digest) != digest:
            self._digests[tool.name] = digest
            self._rules.pop(tool.name, None)
            self._shapes.pop(tool.name, None)
            self._is_changed = True
        shipped = _shipped().get(f"{tool.name} {digest}", {})
        self._shipped[tool.name] = shipped
        if tool.name not in self._rules and tool.name not in self._shapes:
            self._take(tool.name, shipped)

    def _take(self, tool: str, entry: Mapping[str, Any]) -> None:
        if "shape" in entry:
            self._shapes[tool] = from_json(entry["shape"])
        if "rule" in entry:
            self._rules[tool] = textrules.from_json(entry["rule"])

    def observe(self, tool: str, value: Json) -> None:
        """Learn from a result. Of a tool that is well known, only some are looked at."""
        self._seen[tool] += 1
        if self._seen[tool] > _WELL_KNOWN and self._seen[tool] % _EVERY:
            return
        shape, known = shape_of(value), self._shapes.get(tool)
        learned = shape if known is None else merge(known, shape)
        if learned != known:
            self._shapes[tool] = learned
            self._is_changed = True

    def line(self, tool: str) -> str | None:
        """Return what a tool was seen to return, as one line; None if it never did."""
        shape = self._shapes.get(tool)
        return render(shape) if shape is not None else None

    def short(self, tool: str) -> str | None:
        """Return the same as a plain type: `list[{name, kind?}]`."""
        shape = self._shapes.get(tool)
        return render_short(shape) if shape is not None else None

    def type(self, tool: str) -> str | None:
        """Return the same as Python writes it, without keys: `list[dict]`."""
        shape = self._shapes.get(tool)
        return render_short(shape, has_keys=False) if shape is not None else None

    def save(self) -> None:
        """Write what was learned since the last time. A disk that fails costs the memory only."""
        if not self._is_changed:
            return
        self._is_changed = False
        others = ObservedShapes(self._path)  # who shares the file may have learned more meanwhile
        entries = others._entries() | self._entries()
        try:
            write_whole(self._path, json.dumps(entries))
        except StoreError as error:
            _log.warning("%s", error)

    def _entries(self) -> dict[str, JsonObject]:
        return {tool: self._entry(tool) for tool in {*self._shapes, *self._rules}}

    def _entry(self, tool: str) -> JsonObject:
        shape, rule = self._shapes.get(tool), self._rules.get(tool)
        entry: JsonObject = {"definition": self._digests.get(tool, "")}
        if shape is not None:
            entry["shape"] = to_json(shape)
        if rule is not None:
            entry["rule"] = textrules.to_json(rule)
        return entry

    def _load(self) -> None:
        """Read what is kept; a damaged file counts as none."""
        try:
            for tool, entry in json.loads(self._path.read_bytes()).items():
                self._digests[tool] = str(entry["definition"])
                self._take(tool, entry)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self._shapes, self._rules, self._digests = {}, {}, {}


def stable(shape: Shape) -> Shape:
    """Return a shape without the keys that only some answers had."""
    return replace(
        shape,
        keys={key: stable(item) for key, item in shape.keys.items() if key not in shape.sometimes},
        sometimes=frozenset(),
        items=stable(shape.items) if shape.items else None,
    )


@cache
def _shipped() -> Mapping[str, Mapping[str, Any]]:
    entries: Mapping[str, Mapping[str, Any]] = json.loads(SHIPPED.read_bytes())
    return entries


def definition_digest(tool: ListedTool) -> str:
    """Return what changes with what a server says of a tool's answers."""
    text = f"{tool.description}\n{json.dumps(tool.output_schema, sort_keys=True)}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
