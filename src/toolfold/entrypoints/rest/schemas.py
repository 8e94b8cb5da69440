"""What verbs of memory return, as JSON Schema. Pure."""

import types
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.verbs import Verb

_SIMPLE = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip


def returned_schema(verb: Verb) -> JsonObject:
    """Return what a verb answers, in the form that JSON has it."""
    return schema_of(_hints(verb.method)["return"])


def schema_of(kind: Any) -> JsonObject:
    """Return the schema of a type of ours."""
    origin, parts = get_origin(kind), [each for each in get_args(kind) if each is not ...]
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(part) for part in parts]}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (list, tuple, Sequence, AsyncIterator):
        return {"type": "array", "items": schema_of(parts[0])}
    if origin in (dict, Mapping):
        return {"type": "object"}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record(kind)
    return {}


def _record(kind: Any) -> JsonObject:
    hints = _hints(kind)
    properties: JsonObject = {name: schema_of(hint) for name, hint in hints.items()}
    names: list[Json] = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


@cache
def _hints(described: Any) -> dict[str, Any]:
    return get_type_hints(described, localns={"Json": Any})  # which names itself
