"""A Python call becomes exactly the arguments that the server expects."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from jsonschema import Draft202012Validator
from support import SHARED_DATA

from toolfold.catalog.binding import admits_null, bind, parameters_of
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.errors import BadCall

CATALOGUES = sorted((SHARED_DATA / "catalogue").glob("*.json"))


def tool_with(schema: Any, *, function: str = "create_issue") -> Tool:
    listed = ListedTool(name=function, input_schema=schema)
    return Tool(server="github", module="github", function=function, listed=listed)


def object_with(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


ISSUE = tool_with(
    object_with(
        {
            "body": {"type": "string"},
            "issueNumber": {"type": "integer"},
            "from": {"type": "string"},
            "title": {"type": "string"},
            "assignee": {"type": ["string", "null"]},
        },
        "title",
        "issueNumber",
    )
)


def test_positions_follow_the_order_in_which_the_schema_requires_them() -> None:
    assert bind(ISSUE, ["Broken", 7], {}) == {"title": "Broken", "issueNumber": 7}


def test_keywords_are_identifiers_or_the_spelling_of_the_schema() -> None:
    expected = {"title": "Broken", "issueNumber": 7, "from": "me"}

    assert bind(ISSUE, ["Broken"], {"issueNumber": 7, "from_": "me"}) == expected
    assert bind(ISSUE, ["Broken"], {"issueNumber": 7, "from": "me"}) == expected


def test_none_leaves_an_optional_parameter_out_unless_null_is_a_value() -> None:
    bound = bind(ISSUE, ["Broken", 7], {"body": None, "assignee": None})

    assert bound == {"title": "Broken", "issueNumber": 7, "assignee": None}


def test_none_for_a_required_parameter_is_sent() -> None:
    assert bind(ISSUE, [None], {"issueNumber": 7})["title"] is None


def test_a_misspelt_parameter_is_refused_with_the_nearest_one_and_the_signature() -> None:
    with pytest.raises(BadCall) as refused:
        bind(ISSUE, ["Broken", 7], {"bdoy": "x"})

    assert str(refused.value) == (
        "github.create_issue() has no parameter 'bdoy'. Did you mean 'body'?"
        " Call it as github.create_issue(title, issueNumber, body=…, from_=…, assignee=…)."
    )


def test_missing_parameters_are_named() -> None:
    with pytest.raises(BadCall, match=r"create_issue\(\) needs parameters 'title', 'issueNumber'"):
        bind(ISSUE, [], {})


@pytest.mark.parametrize(
    "kwargs",
    [{"title": "again", "issueNumber": 7}, {"from_": "a", "from": "b", "issueNumber": 8}],
    ids=["by position and by name", "under both spellings"],
)
def test_a_parameter_given_twice_is_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(BadCall, match="twice"):
        bind(ISSUE, ["Broken"], kwargs)


def test_an_optional_parameter_by_position_is_refused() -> None:
    with pytest.raises(BadCall, match="at most 2 positional arguments, 3 were given"):
        bind(ISSUE, ["Broken", 7, "body"], {})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {},
        object_with({"a": {}}, additionalProperties=True),
        object_with({"a": {}}, additionalProperties={"type": "integer"}),
        {"$ref": "#/$defs/nowhere"},
    ],
)
def test_other_parameters_pass_where_the_schema_is_open(schema: dict[str, Any]) -> None:
    assert bind(tool_with(schema), [], {"other": 1}) == {"other": 1}


@pytest.mark.parametrize(
    "schema",
    [
        object_with({}),
        object_with({"a": {}}),
        object_with({"a": {}}, additionalProperties=False),
        {"type": "object", "additionalProperties": False},
    ],
)
def test_other_parameters_are_refused_where_it_is_not(schema: dict[str, Any]) -> None:
    with pytest.raises(BadCall, match="no parameter 'other'"):
        bind(tool_with(schema), [], {"other": 1})


def test_parameters_are_found_behind_references_and_all_of() -> None:
    person = object_with({"name": {"type": "string"}}, "name")
    schema = {
        "$ref": "#/$defs/whole",
        "$defs": {
            "whole": {"allOf": [{"$ref": "#/$defs/a~1b"}, object_with({"age": {}})]},
            "a/b": person,
        },
    }

    listed = parameters_of(tool_with(schema)).listed

    assert [(each.name, each.required) for each in listed] == [("name", True), ("age", False)]


def test_a_required_name_without_a_property_is_a_parameter_too() -> None:
    assert bind(tool_with(object_with({}, "id")), [5], {}) == {"id": 5}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": [], "required": "name"},
        {"properties": {"a": 5}, "required": [1, None, ["a"]]},
        {"$ref": "#"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/properties/a/0/b", "properties": {"a": [{}]}},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"allOf": [{"$ref": "#"}] * 50}]},
        {"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}] * 50}}},
    ],
)
def test_a_schema_that_makes_no_sense_still_gives_parameters(schema: dict[str, Any]) -> None:
    assert isinstance(bind(tool_with(schema), [], {}), dict)


def test_parameters_are_computed_once() -> None:
    assert parameters_of(ISSUE) is parameters_of(ISSUE)


def test_a_long_signature_is_elided() -> None:
    many = tool_with(object_with({f"option_{n}": {} for n in range(20)} | {"q": {}}, "q"))

    shown = parameters_of(many).signature(max_chars=60)

    assert shown == "github.create_issue(q, option_0=…, option_1=…, …)"
    assert parameters_of(many).signature().endswith("option_19=…)")


scalars = st.sampled_from(
    [
        True,
        False,
        {},
        {"type": "null"},
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"enum": ["a", None]},
        {"enum": ["a"]},
        {"const": None},
        {"const": 0},
        {"$ref": "#/$defs/text"},
        {"$ref": "#/$defs/perhaps"},
    ]
)
nested = st.recursive(
    scalars,
    lambda inner: st.builds(
        lambda word, parts: {word: parts},
        st.sampled_from(["anyOf", "allOf"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@given(nested)
def test_null_is_admitted_exactly_where_a_validator_admits_it(schema: Any) -> None:
    root = {
        "$defs": {"text": {"type": "string"}, "perhaps": {"type": ["null", "string"]}},
        "allOf": [schema],
    }

    assert admits_null(schema, root) == Draft202012Validator(root).is_valid(None)


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Draw values that fit `schema`; binding never looks inside an object, so any of them does."""
    text = json.dumps(schema)
    if '"object"' in text or '"$ref"' in text:
        return st.dictionaries(st.text(), st.none() | st.integers(), max_size=2)
    return from_schema(schema)


def arguments_of(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    values = {name: values_of(each) for name, each in schema.get("properties", {}).items()}
    required = {name: values.pop(name) for name in schema.get("required", [])}
    return st.fixed_dictionaries(required, optional=values)


@pytest.mark.skipif(not CATALOGUES, reason="The recorded catalogues are not on this machine.")
@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
def test_any_valid_arguments_come_through_a_call_unchanged(path: Path) -> None:
    schemas = [tool["inputSchema"] for tool in json.loads(path.read_text())["tools"]]

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def come_through(data: st.DataObject) -> None:
        schema = data.draw(st.sampled_from(schemas), label="schema")
        arguments = data.draw(arguments_of(schema), label="arguments")
        tool = tool_with(schema)
        identifiers = {each.name: each.identifier for each in parameters_of(tool).listed}
        keywords = {identifiers[name]: value for name, value in arguments.items()}

        assert bind(tool, [], keywords) == arguments

    come_through()
