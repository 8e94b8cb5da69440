"""Schemas that many tools of one upstream share: held once, and written out when one is shown."""

from collections.abc import Iterator

from toolfold.jsontypes import Json, JsonObject

_DEFS = "$defs"


class SharedSchemas(dict[str, Json]):
    """The `$defs` of every tool of one upstream; each tool's schema holds this same object."""


def self_contained(schema: JsonObject) -> JsonObject:
    """Return `schema` with no more of the shared schemas than it refers to."""
    shared = schema.get(_DEFS)
    if not isinstance(shared, SharedSchemas):
        return schema
    own = without_shared(schema)
    needed: JsonObject = {}
    waiting = list(_names(own))
    while waiting:
        name = waiting.pop()
        if name not in needed and name in shared:
            needed[name] = shared[name]
            waiting.extend(_names(shared[name]))
    return own | {_DEFS: dict(sorted(needed.items()))} if needed else own


def without_shared(schema: JsonObject) -> JsonObject:
    """Return `schema` without the shared schemas, whose names then stand for them."""
    if not isinstance(schema.get(_DEFS), SharedSchemas):
        return schema
    return {key: value for key, value in schema.items() if key != _DEFS}


def _names(schema: Json) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and reference.startswith(f"#/{_DEFS}/"):
                yield reference.removeprefix(f"#/{_DEFS}/")
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
