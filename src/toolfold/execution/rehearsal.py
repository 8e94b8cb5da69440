"""A dry run: what reads is called, all else is noted and answered with something that fits."""

import json
from collections.abc import Iterable
from typing import Any, Final

from toolfold.catalog.tool import Tool
from toolfold.jsontypes import Json, JsonObject

_SHOWN_TOOLS: Final = 30
_SHOWN_CALLS: Final = 3
_SHOWN_CHARS: Final = 300
_MOST_DEPTH: Final = 6


class Rehearsal:
    """The calls that a run would make."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self._guessed: str | None = None

    def answer(self, tool: Tool, arguments: JsonObject) -> Json:
        """Note a call, and return what the tool may answer as far as its schema tells."""
        self.calls.append((tool.path, arguments))
        schema = tool.listed.output_schema
        if self._guessed is None:
            known = "as its schema has it" if schema else "an empty object: it has no schema"
            self._guessed = f"call {len(self.calls)}, {tool.path} (answered with {known})"
        return stand_in(schema or {"type": "object"})

    def text(self) -> str:
        """Say what would be called, grouped and counted, and how far that is certain."""
        if not self.calls:
            return "Dry run: the code would call nothing that changes anything."
        tools = dict.fromkeys(path for path, _ in self.calls)
        counted = "1 call" if len(self.calls) == 1 else f"{len(self.calls)} calls"
        lines = [f"Dry run: nothing was changed. {counted} would be made:"]
        for path in list(tools)[:_SHOWN_TOOLS]:
            given = [arguments for name, arguments in self.calls if name == path]
            lines.append(f"  {path}: {len(given)}")
            lines += [f"    {shown}" for shown in _samples(given)]
        if len(tools) > _SHOWN_TOOLS:
            lines.append(f"  and {len(tools) - _SHOWN_TOOLS} other tools")
        lines.append(
            f"Certain up to {self._guessed}; what comes after may depend on answers that only "
            "the real call gives."
        )
        return "\n".join(lines)


def _samples(given: list[JsonObject]) -> Iterable[str]:
    for arguments in given[:_SHOWN_CALLS]:
        text = json.dumps(arguments, ensure_ascii=False)
        yield text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    if len(given) > _SHOWN_CALLS:
        yield f"and {len(given) - _SHOWN_CALLS} more"


def stand_in(schema: Any, depth: int = 0) -> Json:
    """Return the plainest value that a schema allows, as far as we read it."""
    if not isinstance(schema, dict) or depth > _MOST_DEPTH:
        return None
    for key in ("const", "default"):
        if key in schema:
            value: Json = schema[key]
            return value
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        first: Json = schema["enum"][0]
        return first
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return stand_in(schema[key][0], depth + 1)
    return _of_type(schema, depth)


def _of_type(schema: dict[str, Any], depth: int) -> Json:
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), None)
    match kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: stand_in(part, depth + 1) for name, part in properties.items()}
        case "array":
            return []
        case "string":
            return "dry-run"
        case "integer" | "number":
            return schema.get("minimum", 0) or 0
        case "boolean":
            return False
    return None
