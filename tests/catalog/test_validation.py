"""What is known at once of arguments agrees with the whole check."""

import random
from typing import Any

from jsonschema import Draft202012Validator

from toolfold.catalog.validation import _fits_surely

PLAIN = ("string", "integer", "number", "boolean", "null")


def make_schema(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    kinds = [*PLAIN, "array", "object", "enum", "any of", "anything", "bounded"]
    match chance.choice(kinds if depth < 4 else PLAIN):
        case "array":
            return {"type": "array", "items": make_schema(chance, depth + 1)}
        case "enum":
            return {"type": "string", "enum": ["a", "b", 1], "title": "A choice"}
        case "any of":
            return {"anyOf": [make_schema(chance, depth + 1) for _ in range(2)]}
        case "anything":
            return {}
        case "bounded":
            return {"type": "integer", "minimum": 1}
        case "object":
            names = chance.sample("abc", chance.randint(0, 3))
            made: dict[str, Any] = {
                "type": "object",
                "properties": {name: make_schema(chance, depth + 1) for name in names},
                "required": chance.sample("abz", chance.randint(0, 2)),
            }
            if chance.random() < 0.5:
                made["additionalProperties"] = chance.random() < 0.5
            return made
        case kind:
            return {"type": kind, "description": "What it is."}


def make_value(chance: random.Random, depth: int = 0) -> Any:
    values: list[Any] = [None, True, 0, 1, 1.0, 2.5, "a", "zz", list, dict]
    found = chance.choice(values[:8] if depth > 3 else values)
    if found is list:
        return [make_value(chance, depth + 1) for _ in range(chance.randint(0, 2))]
    if found is dict:
        names = chance.sample("abcz", chance.randint(0, 3))
        return {name: make_value(chance, depth + 1) for name in names}
    return found


def test_nothing_is_taken_at_once_that_the_whole_check_refuses() -> None:
    chance, fitting, taken = random.Random(1), 0, 0
    for _ in range(2_000):
        schema = make_schema(chance)
        fits_surely, whole = _fits_surely(schema), Draft202012Validator(schema)
        for _ in range(10):
            value = make_value(chance)
            is_fitting, is_taken = whole.is_valid(value), fits_surely(value)
            assert is_fitting or not is_taken, (schema, value)
            fitting, taken = fitting + is_fitting, taken + is_taken

    assert taken > 0.6 * fitting, "or it is of no use"


def test_what_it_does_not_know_it_does_not_take() -> None:
    for schema in (
        {"type": "string", "pattern": "^a$"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": ["string", "null"]},
        {"type": "object", "properties": 1},
        {"type": "object", "required": 1},
        {"type": "string", "enum": []},
        {"type": "nothing"},
        {"not": {}},
    ):
        assert not _fits_surely(schema)("a")
        assert not _fits_surely(schema)({})
