"""What stands in for the answer of a tool that is not called, and what a dry run left out."""

import ast
from collections import namedtuple
from typing import Any, Final

from toolfold.catalog.binding import merged, wrapped_result
from toolfold.catalog.tool import ListedTool, Returned
from toolfold.jsontypes import Json

_MAX_DEPTH: Final = 8
_MAX_PARTS: Final = 2_000
_TEXT: Final = "dry-run"
_PLAIN: Final[dict[str, Any]] = {
    "str": _TEXT,
    "int": 0,
    "float": 0.0,
    "bool": False,
    "tuple": (),
}


def stand_in(tool: ListedTool) -> Any:
    """Return what a tool may answer as far as is known; an empty object where nothing is."""
    if tool.returned is not None:
        return _Classes(tool.returned).value()
    schema = tool.output_schema
    if schema is None:
        return {}
    return _Schema(schema).value(wrapped_result(schema) or schema)


class _Schema:
    """Makes values by the parts of one schema; what is too deep or too much is None."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._room = _MAX_PARTS

    def value(self, schema: Json, depth: int = 0) -> Json:
        """Return the plainest value that a part allows, as far as we read it."""
        self._room -= 1
        whole = merged(schema, self._root)
        if not isinstance(whole, dict) or depth > _MAX_DEPTH or self._room < 0:
            return None
        for key in ("const", "default"):
            if key in whole:
                return whole[key]
        for key in ("enum", "anyOf", "oneOf"):
            choices = whole.get(key)
            if isinstance(choices, list) and choices:
                return choices[0] if key == "enum" else self.value(choices[0], depth + 1)
        return self._of_type(whole, depth)

    def _of_type(self, schema: dict[str, Json], depth: int) -> Json:
        properties = schema.get("properties")
        kind = schema.get("type", "object" if properties else None)
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), None)
        match kind:
            case "object" if isinstance(properties, dict):
                return {name: self.value(part, depth + 1) for name, part in properties.items()}
            case "object":
                return {}
            case "array":
                return []
            case "string":
                return _TEXT
            case "integer" | "number":
                return schema.get("minimum", 0)
            case "boolean":
                return False
        return None


class _Classes:
    """Makes values by what a tool of our own returns, as Python has it."""

    def __init__(self, returned: Returned) -> None:
        self._type = returned.type
        sources = ast.parse("\n".join(returned.classes)).body
        self._classes = {each.name: each for each in sources if isinstance(each, ast.ClassDef)}

    def value(self) -> Any:
        """Return what the tool may return."""
        return self._of(ast.parse(self._type, mode="eval").body)

    def _of(self, annotation: ast.expr) -> Any:
        match annotation:
            case ast.BinOp(left=left):  # X | None
                return self._of(left)
            case ast.Subscript(value=ast.Name(id="list")):
                return []
            case ast.Subscript(value=ast.Name(id="dict")) | ast.Name(id="dict"):
                return {}
            case ast.Subscript(value=inner):
                return self._of(inner)
            case ast.Name(id=name) if name in self._classes:
                return self._named(self._classes[name])
            case ast.Name(id=name):
                return _PLAIN.get(name)
        return None

    def _named(self, source: ast.ClassDef) -> Any:
        parts = {
            each.target.id: self._of(each.annotation)
            for each in source.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
        return namedtuple(source.name, parts, module="__main__")(**parts)
