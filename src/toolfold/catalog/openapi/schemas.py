"""Schemas of specifications into JSON Schema, each shared one once. Pure.

Of what is sent, properties that are only read are left out; of what is answered, those that are
only written. Whatever makes no sense as a schema is left out too, so that the rest can be used.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import chain, count
from typing import Any, Final, Literal

from toolfold.catalog.binding import resolve
from toolfold.catalog.sanitize import plain
from toolfold.catalog.tool import SharedSchemas
from toolfold.jsontypes import Json, JsonObject

Direction = Literal["sent", "answered"]

_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_SPELLINGS: Final = {
    **dict.fromkeys(("int", "int32", "int64", "long"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("str", "text", "date", "date-time", "datetime", "uuid", "file"), "string"),
    **dict.fromkeys(("list",), "array"),
    **dict.fromkeys(("map", "dict", "hash"), "object"),
}
_NUMBERS: Final = ("minimum", "maximum", "multipleOf")
_COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_BOUNDS: Final = frozenset(
    {*_NUMBERS, *_COUNTS, "exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "pattern"}
)
_UNIONS: Final = ("allOf", "anyOf", "oneOf")
_SLASHED: Final = re.compile(r"/(\^.*\$)/", re.DOTALL)
_MAX_DEPTH: Final = 60
_MAX_DESCRIPTION_CHARS: Final = 400

BINARY: Final[JsonObject] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "base64": {"type": "string"},
                "filename": {"type": "string"},
                "content_type": {"type": "string"},
            },
            "required": ["base64"],
            "additionalProperties": False,
        },
    ]
}
"""What stands for bytes in arguments: text as it is, or base64."""


class SchemaSet:
    """Converts schemas of one specification, and the shared ones that they refer to."""

    def __init__(self, root: JsonObject, *, has_siblings: bool) -> None:
        """Take the whole specification.

        `has_siblings` says whether keywords beside a `$ref` count, as they do since 3.1.
        """
        self._root = root
        self.has_siblings = has_siblings
        self.shared: dict[Direction, SharedSchemas] = {
            "sent": SharedSchemas(),
            "answered": SharedSchemas(),
        }
        self._names: dict[str, str] = {}
        self._pointers: dict[str, str] = {}
        self._waiting: list[tuple[Direction, str, str]] = []
        self._known: set[tuple[Direction, str]] = set()

    def convert(self, schema: Json, direction: Direction, *, described: bool = False) -> Json:
        """Return a schema; what it refers to is in `shared` once `finish` was called."""
        return _Conversion(self, direction).of(schema, described=described)

    def finish(self) -> None:
        """Convert every shared schema that was referred to."""
        while self._waiting:
            direction, pointer, name = self._waiting.pop()
            target = self.resolved({"$ref": pointer})
            self.shared[direction][name] = _Conversion(self, direction).of(target)

    def resolved(self, value: Json) -> Json:
        """Follow the references of `value` to what is none."""
        return resolve(value, self._root)

    def resolved_answer(self, converted: Json) -> Json:
        """Follow a converted schema of an answer to what it stands for, as it was written."""
        reference = converted.get("$ref") if isinstance(converted, dict) else None
        if not isinstance(reference, str):
            return converted
        name = reference.removeprefix("#/$defs/")
        return self.resolved({"$ref": self._pointers.get(name, "")})

    def name_of(self, pointer: str, direction: Direction) -> str:
        """Return the name of a shared schema, and remember to convert it."""
        name = self._names.get(pointer) or self._new_name(pointer)
        if (direction, pointer) not in self._known:
            self._known.add((direction, pointer))
            self._waiting.append((direction, pointer, name))
        return name

    def _new_name(self, pointer: str) -> str:
        last = pointer.rpartition("/")[2]
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", last)[:80] or "schema"
        names = chain([stem], (f"{stem}_{number}" for number in count(2)))
        name = next(each for each in names if each not in self._pointers)
        self._pointers[name] = pointer
        self._names[pointer] = name
        return name


class _Conversion:
    """The conversion of one schema with all that stands in it."""

    def __init__(self, schemas: SchemaSet, direction: Direction) -> None:
        self._schemas = schemas
        self._direction = direction
        self._unseen = "readOnly" if direction == "sent" else "writeOnly"

    def of(self, schema: Json, depth: int = 0, *, described: bool = False) -> Json:
        if not isinstance(schema, dict):
            return schema is not False
        if depth > _MAX_DEPTH:
            return True
        reference = schema.get("$ref")
        converted: JsonObject = {}
        if isinstance(reference, str):
            converted = self._reference(schema, reference)
            if not self._schemas.has_siblings:
                return self._described(schema, converted) if described else converted
        self._take_types(schema, converted)
        _take_bounds(schema, converted)
        self._take_inside(schema, converted, depth)
        _take_null(schema, converted)
        _take_values(schema, converted)
        return self._described(schema, converted) if described else converted

    def _reference(self, schema: JsonObject, pointer: str) -> JsonObject:
        target = self._schemas.resolved(schema)
        if target is True or not isinstance(target, dict):
            return {}
        return {"$ref": f"#/$defs/{self._schemas.name_of(pointer, self._direction)}"}

    def _described(self, schema: JsonObject, converted: JsonObject) -> JsonObject:
        """Add what a person is told of a value: only outermost schemas are shown with it."""
        text = schema.get("description")
        if not isinstance(text, str) or not text:
            target = self._schemas.resolved(schema)
            text = target.get("description") if isinstance(target, dict) else None
        if isinstance(text, str) and text.strip():
            converted["description"] = " ".join(plain(text).split())[:_MAX_DESCRIPTION_CHARS]
        default = schema.get("default")
        if isinstance(default, str | int | float):
            converted["default"] = default
        return converted

    def _take_types(self, schema: JsonObject, converted: JsonObject) -> None:
        written = schema.get("type")
        if isinstance(written, list):
            types = [kind for each in written if (kind := _type(each))]
            if types and len(types) == len(written):
                converted["type"] = list(dict.fromkeys(types))
        elif kind := _type(written):
            converted["type"] = kind
        form = schema.get("format")
        if isinstance(form, str):
            converted["format"] = form

    def _take_inside(self, schema: JsonObject, converted: JsonObject, depth: int) -> None:
        for keyword in _UNIONS:
            parts = schema.get(keyword)
            if isinstance(parts, list) and parts:
                self._take_union(keyword, parts, converted, depth)
        for keyword in ("items", "not", "contains", "additionalProperties"):
            if isinstance(schema.get(keyword), dict | bool):
                converted[keyword] = self.of(schema[keyword], depth + 1)
        if "allOf" in converted and converted.get("additionalProperties") is False:
            del converted["additionalProperties"]  # it would refuse what the parts are about
        prefix = schema.get("prefixItems")
        if isinstance(prefix, list) and prefix:
            converted["prefixItems"] = [self.of(part, depth + 1) for part in prefix]
        self._take_properties(schema, converted, depth)

    def _take_union(
        self, keyword: str, parts: list[Json], converted: JsonObject, depth: int
    ) -> None:
        """Take alternatives or parts.

        Alternatives of what is sent may overlap: many do by mistake, and the API decides. A part
        that allows no other properties than its own would refuse those of the other parts.
        """
        if keyword == "allOf" and len(parts) > 1:
            parts = [self._opened(part) for part in parts]
        found = [self.of(part, depth + 1) for part in parts]
        if keyword == "oneOf" and self._direction == "sent" and "anyOf" not in converted:
            keyword = "anyOf"
        converted[keyword] = found

    def _opened(self, part: Json) -> Json:
        target = self._schemas.resolved(part)
        if not isinstance(target, dict) or target.get("additionalProperties") is not False:
            return part
        return {key: value for key, value in target.items() if key != "additionalProperties"}

    def _take_properties(self, schema: JsonObject, converted: JsonObject, depth: int) -> None:
        properties = schema.get("properties")
        hidden: set[str] = set()
        optional: set[str] = set()
        if isinstance(properties, dict):
            optional = {name for name, each in properties.items() if self._is_unseen(each)}
            hidden = {name for name in optional if self._is_marked(properties[name])}
            converted["properties"] = {
                name: self.of(each, depth + 1)
                for name, each in properties.items()
                if name not in hidden
            }
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict):
            usable = {text: each for text, each in patterns.items() if _is_pattern(text)}
            converted["patternProperties"] = {
                text: self.of(each, depth + 1) for text, each in usable.items()
            }
        required = schema.get("required")
        if isinstance(required, list):
            names = [each for each in required if isinstance(each, str) and each not in optional]
            if names:
                converted["required"] = list(dict.fromkeys(names))

    def _is_unseen(self, schema: Json) -> bool:
        return any(map(self._is_marked, (schema, self._schemas.resolved(schema))))

    def _is_marked(self, schema: Json) -> bool:
        """Whether that stands in the schema itself: a shared one may serve both directions."""
        return isinstance(schema, dict) and schema.get(self._unseen) is True


def _type(written: Json) -> str | None:
    if not isinstance(written, str):
        return None
    lowered = written.lower()
    return lowered if lowered in _TYPES else _SPELLINGS.get(lowered)


def _take_bounds(schema: JsonObject, converted: JsonObject) -> None:
    if _BOUNDS.isdisjoint(schema):
        return
    for keyword in _NUMBERS:
        value = _number(schema.get(keyword))
        if value is not None and (keyword != "multipleOf" or value > 0):
            converted[keyword] = value
    for keyword in _COUNTS:
        most = _number(schema.get(keyword))
        if most is not None and most >= 0:
            converted[keyword] = int(most)
    _take_exclusive(schema, converted)
    if schema.get("uniqueItems") is True:
        converted["uniqueItems"] = True
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and _is_pattern(pattern := _bare(pattern)):
        converted["pattern"] = pattern


def _take_exclusive(schema: JsonObject, converted: JsonObject) -> None:
    """Take bounds that are not reached: until 3.0 a mark on the bound, since then a number."""
    for bound, keyword in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        value = schema.get(keyword)
        if value is True and bound in converted:
            converted[keyword] = converted.pop(bound)
        elif (number := _number(value)) is not None:
            converted[keyword] = number


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and abs(value) != float("inf") else None


def _bare(pattern: str) -> str:
    """Return an expression without the slashes that other languages have around one."""
    found = _SLASHED.fullmatch(pattern)
    return found[1] if found else pattern


@lru_cache(maxsize=4096)
def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _take_values(schema: JsonObject, converted: JsonObject) -> None:
    values = schema.get("enum")
    if isinstance(values, list) and values:
        kept = list(filter(_fitting(converted.get("type")), values))
        items = converted.get("items")
        if kept:
            converted["enum"] = kept
        elif isinstance(items, dict) and converted.get("type") == "array":
            converted["items"] = {**items, "enum": values}  # they are of its items
        else:
            converted["enum"] = values
            converted.pop("type", None)  # nothing could be both
    if "const" in schema:
        converted["const"] = schema["const"]


def _fitting(kind: Json) -> Callable[[Json], bool]:
    """Return what tells whether a value is of a type: lists of values hold others by mistake."""
    kinds = kind if isinstance(kind, list) else [kind]
    classes: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "array": (list,),
        "object": (dict,),
        "null": (type(None),),
    }
    wanted = [cls for each in kinds if isinstance(each, str) for cls in classes[each]]

    def fits(value: Json) -> bool:
        if isinstance(value, bool):
            return bool in wanted or not wanted
        return not wanted or isinstance(value, tuple(wanted))

    return fits


def _take_null(schema: JsonObject, converted: JsonObject) -> None:
    if schema.get("nullable") is not True and schema.get("x-nullable") is not True:
        return
    kind = converted.get("type")
    if isinstance(kind, str):
        converted["type"] = [kind, "null"]
