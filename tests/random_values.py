"""Random values that fit a JSON Schema, for calling tools that somebody else described."""

import random
import re
from typing import Any

_DEEPEST = 4
_ODD = ["x", "two words", "quote's", "ünï", "line\nbreak"]
_TEXTS = [*_ODD, "PROJ-12", "PROJ", "12:34", "a1b2", "x" * 40, "a.png", "=1", "SlicerStyleDark1"]


def random_arguments(schema: Any, chance: random.Random) -> dict[str, Any]:
    """Return arguments that fit: all that are required, and some of the others."""
    return _object(schema, schema, chance, 0)


def random_value(schema: Any, root: Any, chance: random.Random, depth: int) -> Any:
    """Return a value that fits `schema`, as far as its types and choices say."""
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return random_value(_resolved(schema["$ref"], root), root, chance, depth)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return chance.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return random_value(chance.choice(schema[key]), root, chance, depth)
    if schema.get("allOf"):
        return random_value(schema["allOf"][0], root, chance, depth)
    kind = schema.get("type", "string")
    return _of_kind(
        chance.choice(kind) if isinstance(kind, list) else kind, schema, root, chance, depth
    )


def _of_kind(kind: str, schema: Any, root: Any, chance: random.Random, depth: int) -> Any:
    match kind:
        case "object":
            return _object(schema, root, chance, depth)
        case "array":
            count = max(schema.get("minItems", 0), chance.randint(0, 2) if depth < _DEEPEST else 0)
            return [
                random_value(schema.get("items"), root, chance, depth + 1) for _ in range(count)
            ]
        case "integer":
            low, high = _range(schema)
            return chance.randint(low, high)
        case "number":
            low, high = _range(schema)
            return chance.choice([low, (low + high) / 2, high])
        case "boolean":
            return chance.choice([True, False])
        case "null":
            return None
        case _:
            return _text(schema, chance)


def _range(schema: Any) -> tuple[int, int]:
    low = max(schema.get("minimum", 0), schema.get("exclusiveMinimum", -1) + 1)
    high = min(schema.get("maximum", low + 100), schema.get("exclusiveMaximum", low + 101) - 1)
    return int(low), max(int(low), int(high))


def _text(schema: Any, chance: random.Random) -> str:
    pattern = re.compile(schema.get("pattern", ""))
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1_000)
    fitting = [each for each in _TEXTS if pattern.search(each) and least <= len(each) <= most]
    return chance.choice([each for each in fitting if each in _ODD] or fitting)


def _object(schema: Any, root: Any, chance: random.Random, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    chosen = [
        name
        for name in properties
        if name in required or (depth < _DEEPEST and chance.random() < 0.3)
    ]
    return {name: random_value(properties[name], root, chance, depth + 1) for name in chosen}


def _resolved(reference: str, root: Any) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        root = root[int(part)] if isinstance(root, list) else root[part]
    return root
