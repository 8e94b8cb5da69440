"""Schemas that say two things at once: what users can send is what the author meant."""

from typing import Any

import pytest

from toolfold.catalog.openapi.schemas import SchemaSet

PART = {"type": "object", "properties": {"name": {"type": "string"}}}
SHARED = {"components": {"schemas": {"Id": {"type": "string", "readOnly": True}}}}
ID = {"$ref": "#/components/schemas/Id"}


def sent(schema: Any) -> Any:
    return SchemaSet(SHARED, has_siblings=False).convert(schema, "sent")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(
            {"type": "string", "enum": [10, 20]}, {"enum": [10, 20]}, id="values of another type"
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]},
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            id="values of the items beside the array",
        ),
        pytest.param(
            {"type": "string", "pattern": "/^[a-z]+$/"},
            {"type": "string", "pattern": "^[a-z]+$"},
            id="an expression between slashes",
        ),
        pytest.param(
            {"type": "string", "pattern": "/etc/"},
            {"type": "string", "pattern": "/etc/"},
            id="an expression that has slashes",
        ),
        pytest.param(
            {"allOf": [PART], "additionalProperties": False, "required": ["name"]},
            {"allOf": [PART], "required": ["name"]},
            id="no other properties beside parts",
        ),
        pytest.param(
            {"allOf": [{**PART, "additionalProperties": False}, {"type": "object"}]},
            {"allOf": [PART, {"type": "object"}]},
            id="no other properties in one of two parts",
        ),
        pytest.param(
            {"oneOf": [PART, {"type": "object"}]},
            {"anyOf": [PART, {"type": "object"}]},
            id="alternatives that overlap",
        ),
        pytest.param(
            {"properties": {"id": ID}, "required": ["id"]},
            {"properties": {"id": {"$ref": "#/$defs/Id"}}},
            id="a shared schema that is only read can be sent, and need not",
        ),
        pytest.param(
            {"properties": {"id": {"type": "string", "readOnly": True}}, "required": ["id"]},
            {"properties": {}},
            id="a property that is only read cannot be sent",
        ),
    ],
)
def test_what_can_be_sent_is_what_was_meant(written: Any, expected: Any) -> None:
    assert sent(written) == expected


def test_alternatives_of_answers_stay_as_they_are() -> None:
    schema = {"oneOf": [PART, {"type": "object"}]}

    assert SchemaSet(SHARED, has_siblings=False).convert(schema, "answered") == schema
