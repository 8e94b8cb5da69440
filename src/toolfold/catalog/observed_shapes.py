"""What tools were seen to return, kept on disk by the hash of their server's configuration.

Of each tool that is the shape of its answers, and the rule by which their texts are values. Both
hold while the tool is defined as it was. Of tools of some public servers both are known before they
were ever called: the package carries them.
"""

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from toolfold.catalog import textrules
from toolfold.catalog.listing import write_whole
from toolfold.catalog.shapes import Shape, from_json, merge, render, render_short, shape_of, to_json
from toolfold.catalog.textrules import OPEN, TextRule
from toolfold.catalog.tool import ListedTool
from toolfold.errors import StoreError
from toolfold.jsontypes import Json, JsonObject

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
        self._load()
        self._seen: Counter[str] = Counter()
        self._is_changed = False

    def rule(self, tool: ListedTool) -> TextRule:
        """Return the rule by which the texts of a tool are values."""
        self._forget_if_changed(tool)
        return self._rules.get(tool.name, OPEN)

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
        digest = _digest(tool)
        if self._digests.setdefault(tool.name, digest) != digest:
            self._digests[tool.name] = digest
            self._rules.pop(tool.name, None)
            self._shapes.pop(tool.name, None)
            self._is_changed = True
        if tool.name not in self._rules and tool.name not in self._shapes:
            self._take(tool.name, _shipped().get(f"{tool.name} {digest}", {}))

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
        """Return the same as a plain type: `list[dict]`."""
        shape = self._shapes.get(tool)
        return render_short(shape) if shape is not None else None

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


def _digest(tool: ListedTool) -> str:
    """Return what changes with what a server says of a tool's answers."""
    text = f"{tool.description}\n{json.dumps(tool.output_schema, sort_keys=True)}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
