"""What a dry run answers fits what the tool is known to return."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolfold.catalog.tool import ListedTool
from toolfold.execution.trust.stand_ins import stand_in
from toolfold.mounts import built_in_tools

OWNER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/Owner"}},
}


def answer(schema: Any) -> Any:
    return stand_in(ListedTool(name="t", input_schema={}, output_schema=schema))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, {}),
        ({"type": "object"}, {}),
        ({"properties": {"id": {"type": "integer"}}}, {"id": 0}),
        ({"type": "object", "properties": []}, {}),
        ({"type": ["null", "number"], "minimum": 3}, 3),
        ({"enum": ["open", "closed"]}, "open"),
        ({"const": 7}, 7),
        ({"type": "string", "default": "x"}, "x"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, False),
        ({"allOf": [{"properties": {"a": {"type": "array"}}}, {"required": ["a"]}]}, {"a": []}),
        (
            {
                "type": "object",
                "properties": {"result": {"type": "array"}},
                "x-fastmcp-wrap-result": True,
            },
            [],
        ),
        ({"$ref": "#/nowhere"}, None),
        ({"type": 7}, None),
        ({"anyOf": [], "type": "string"}, "dry-run"),
    ],
)
def test_it_is_the_plainest_value_that_fits(schema: Any, value: Any) -> None:
    assert answer(schema) == value


def test_references_are_followed_and_circles_end() -> None:
    schema = {
        "type": "object",
        "properties": {"owner": {"$ref": "#/$defs/Owner"}},
        "$defs": {"Owner": OWNER},
    }
    assert answer(schema)["owner"]["boss"]["name"] == "dry-run"


def test_a_schema_that_grows_without_end_is_cut_off() -> None:
    wide = {"properties": {f"p{n}": {"$ref": "#/$defs/Wide"} for n in range(50)}}
    assert answer({"$ref": "#/$defs/Wide", "$defs": {"Wide": wide}})["p0"]["p0"]


SCHEMAS = st.recursive(
    st.sampled_from([{"type": each} for each in ("string", "integer", "number", "boolean")]),
    lambda inner: (
        st.builds(lambda part: {"type": "array", "items": part}, inner)
        | st.builds(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        )
        | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2))
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_plain_schemas_are_fitted(schema: Any) -> None:
    Draft202012Validator(schema).validate(answer(schema))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "properties", "anyOf", "allOf", "$ref", "enum"]), inner
            )
        ),
        max_leaves=8,
    )
)
def test_no_schema_breaks_it(odd: Any) -> None:
    if isinstance(odd, dict):
        answer(odd)


def test_our_own_tools_are_answered_as_they_answer() -> None:
    tools = {
        f"{module}.{tool.name}": tool for module, each in built_in_tools().items() for tool in each
    }

    assert stand_in(tools["memory.store"]) == "dry-run"
    assert stand_in(tools["memory.delete"]) is False
    assert stand_in(tools["memory.store_batch"]) == ()
    assert stand_in(tools["memory.undo"]).counts.faded == 0
    assert stand_in(tools["graph.create_entity"]).observations == ()
    assert stand_in(tools["graph.create_entities"]) == {}
    for name, tool in tools.items():
        if tool.returned:
            ast.parse(tool.returned.type)
            is_bare = "None" in tool.returned.type or "Any" in tool.returned.type
            assert stand_in(tool) is not None or is_bare, name
