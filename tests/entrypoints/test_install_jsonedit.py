"""Edits of JSON text: what is asked for changes, and no other byte."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from support import examples

from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.install.jsonedit import (
    append,
    drop,
    find_layout,
    member_text,
    members,
    swap,
)
from toolfold.entrypoints.install.jsontext import JsonText

unhurried = examples(300)

NAMES = st.text(min_size=1, max_size=6) | st.sampled_from(["a//b", '"', "\\", "{", "}", "/*", ","])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["// no", "/* no */", "},", '\\"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
GAPS = st.sampled_from(
    ["", " ", "\n", "\r\n    ", "\t", " // why, {so}\n  ", "/* a } */", "\n/*,*/\n"]
)


@st.composite
def written(draw: DrawFn, value: Any) -> str:
    """A value as somebody might write it: comments, gaps and a last comma anywhere."""
    if isinstance(value, dict):
        parts = [
            f"{draw(GAPS)}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(GAPS)}:"
            f"{draw(GAPS)}{draw(written(inner))}{draw(GAPS)}"
            for key, inner in value.items()
        ]
        return "{" + ",".join(parts) + _end(draw, bool(parts)) + "}"
    if isinstance(value, list):
        items = [f"{draw(GAPS)}{draw(written(inner))}{draw(GAPS)}" for inner in value]
        return "[" + ",".join(items) + _end(draw, bool(items)) + "]"
    return json.dumps(value)


def _end(draw: DrawFn, has_parts: bool) -> str:
    return ("," if has_parts and draw(st.booleans()) else "") + draw(GAPS)


@st.composite
def documents(draw: DrawFn, *, least: int = 0) -> tuple[str, dict[str, Any]]:
    value = draw(st.dictionaries(NAMES, VALUES, min_size=least, max_size=5))
    return draw(GAPS) + draw(written(value)) + draw(GAPS), value


def comments(text: str) -> list[str]:
    found = re.findall(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', text, re.DOTALL)
    return [comment for comment in found if comment]


def parse(text: str) -> Any:
    document = parse_jsonc(text.encode())
    assert document.duplicates == ()
    return document.value


@given(documents(least=1), st.data())
@unhurried
def test_replacing_one_member_leaves_all_other_bytes_equal(
    document: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    text, value = document
    name = data.draw(st.sampled_from(sorted(value)))
    [member] = [each for each in members(text) if each.name == name]

    edited = swap(text, name, '"new one": [1]')

    assert edited.startswith(text[: member.start])
    assert edited.endswith(text[member.end :])
    assert len(edited) == len(text) - (member.end - member.start) + len('"new one": [1]')
    assert parse(edited) == {
        ("new one" if key == name else key): ([1] if key == name else inner)
        for key, inner in value.items()
    }


@given(documents(least=1), st.data())
@unhurried
def test_a_dropped_member_takes_neither_a_neighbour_nor_a_comment_with_it(
    document: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    text, value = document
    name = data.draw(st.sampled_from(sorted(value)))
    [gone] = [each for each in members(text) if each.name == name]
    outside = comments(text[: gone.start]) + comments(text[gone.end :])

    edited = drop(text, name)

    assert parse(edited) == {key: inner for key, inner in value.items() if key != name}
    assert comments(edited) == outside
    kept = {each.name: text[each.start : each.end] for each in members(text) if each != gone}
    assert {each.name: edited[each.start : each.end] for each in members(edited)} == kept


@given(documents(), VALUES, st.data())
@unhurried
def test_an_added_member_leaves_everything_before_and_behind_it_as_it_was(
    document: tuple[str, dict[str, Any]], addition: Any, data: st.DataObject
) -> None:
    text, value = document
    name = data.draw(NAMES.filter(lambda name: name not in value))
    layout = find_layout(text, 0)
    after = data.draw(st.sampled_from([None, *value]))

    edited = append(text, member_text(name, layout.render(addition)), layout, after=after)

    assert parse(edited) == {**value, name: addition}
    assert comments(edited) == comments(text)
    [added] = [each for each in members(edited) if each.name == name]
    others = edited[: added.start] + edited[added.end :]
    assert re.sub(r"[\s,]", "", others) == re.sub(r"[\s,]", "", text)


@given(documents(), st.dictionaries(NAMES, VALUES, max_size=3), st.data())
@unhurried
def test_a_table_deep_in_a_document_is_edited_without_touching_the_rest(
    document: tuple[str, dict[str, Any]], servers: dict[str, Any], data: st.DataObject
) -> None:
    _, value = document
    root = {**value, "projects": {"/a/b": {"mcpServers": servers}}}
    text = JsonText.parse(data.draw(written(root)))
    table = ("projects", "/a/b", "mcpServers")
    gone = data.draw(st.lists(st.sampled_from(sorted(servers)), unique=True)) if servers else []
    new = data.draw(NAMES.filter(lambda name: name not in servers or name in gone))

    edited = text.edited(table, gone, {new: text.render(table, new, {"command": "x"})})

    left = {name: inner for name, inner in servers.items() if name not in gone}
    assert edited.servers(table) == {**left, new: {"command": "x"}}
    assert {**edited.root, "projects": 0} == {**root, "projects": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"a": 1}', "{}"),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2,\n  "a": 1\n}', '{\n  "b": 2\n}'),
        ('{\r\n\t"b": 2,\r\n\t"a": 1,\r\n}', '{\r\n\t"b": 2,\r\n}'),
        ('{\n  // of a\n  "a": 1, // more\n  "b": 2\n}', '{\n  // of a\n  // more\n  "b": 2\n}'),
        ('{\n  "b": 2, // of b\n  "a": 1\n}', '{\n  "b": 2 // of b\n}'),
        ('{\n  "a": 1\n}', "{}"),
    ],
)
def test_a_dropped_member_leaves_the_text_as_a_person_would(text: str, expected: str) -> None:
    assert drop(text, "a") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "x": {\n    "y": 1\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "x": {"y": 1}}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"x": {\n\t\t"y": 1\n\t}\n}\n'),
        (
            '{\r\n    "a": 1,\r\n}',
            '{\r\n    "a": 1,\r\n    "x": {\r\n        "y": 1\r\n    },\r\n}',
        ),
        ("{\n  // none yet\n}\n", '{\n  "x": {\n    "y": 1\n  }\n  // none yet\n}\n'),
    ],
)
def test_an_added_member_looks_like_its_neighbours(text: str, expected: str) -> None:
    layout = find_layout(text, 0)

    assert append(text, member_text("x", layout.render({"y": 1})), layout) == expected


def test_half_a_character_in_a_name_is_written_so_that_it_can_be_saved() -> None:
    text = JsonText.parse("{}")

    edited = text.edited(("s",), (), {"\ud800": text.render(("s",), "\ud800", {"a": "\ud800"})})

    assert parse_jsonc(edited.text.encode()).value == {"s": {"\ud800": {"a": "\ud800"}}}
