"""The example that the REST API gives of a call: it fits the schema of the tool."""

import json
from typing import Any

import pytest

from toolfold.catalog.tool import ListedTool, Tool
from toolfold.entrypoints.rest.registry import described


def example(schema: dict[str, Any], **more: Any) -> Any:
    root = {"type": "object", "properties": {"it": schema}, "required": ["it"], **more}
    tool = Tool(
        module="m", function="f", server="m", listed=ListedTool(name="f", input_schema=root)
    )
    shown: Any = described(tool, None)["example"]
    return shown["arguments"]["it"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, ["it", "it"]),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "number", "maximum": 0.5}, 0.5),
        ({"type": "integer", "exclusiveMinimum": 2.5}, 4),
        ({"type": "string", "minLength": 4}, "itxx"),
        ({"type": "string", "pattern": "^[A-Z]+$"}, "IT"),
        ({"pattern": "^[A-Z]+-[0-9]+$", "description": "e.g. 'no' or 'AB-1'"}, "AB-1"),
        ({"type": "object", "required": ["a"], "properties": {"a": {"const": 3}}}, {"a": 3}),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ({"type": "integer", "minimum": float("nan")}, 1),
    ],
)
def test_an_example_fits_its_schema(schema: dict[str, Any], expected: Any) -> None:
    assert example(schema) == expected


def test_an_example_of_a_schema_without_end_is_short() -> None:
    names = [f"n{number}" for number in range(100)]
    endless = {"type": "array", "minItems": 10**9, "items": {"$ref": "#/$defs/all"}}
    node = {"type": "object", "required": names, "properties": dict.fromkeys(names, endless)}

    assert len(json.dumps(example(endless, **{"$defs": {"all": node}}))) < 100_000
