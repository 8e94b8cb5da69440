"""Results are what they look like, by one rule for each tool, in both interpreters."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, scripted

from toolfold.catalog.textrules import OPEN, kind_of, parse_text

READING = {"annotations": {"readOnlyHint": True}}
TEXT = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
VALUE = {"type": "object", "properties": {"result": {"type": "array", "items": {}}}}
NUMBER = {"type": "object", "properties": {"result": {"type": "integer"}}}
NAMED = {"type": "object", "properties": {"rows": {"type": "array"}}}
PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
ID = {"type": "object", "properties": {"id": {"type": "string"}}}
WRAPPED = {"x-fastmcp-wrap-result": True, "type": "object", "properties": {"result": {}}}
STRING = {**WRAPPED, "properties": {"result": {"type": "string"}}}
DEEP = "[" * 5_000 + "]" * 5_000
ROWS = [
    {"n": number, "name": f"it's {number}", "none": None, "ok": True} for number in range(2_000)
]


def block(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def declared(value: Any, *texts: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} for text in texts]
    return {"content": blocks, "structuredContent": value}


# What a tool that declares nothing answers as its first text, and the value that it becomes.
UNDECLARED: dict[str, Any] = {
    '{"a": 1}': {"a": 1},
    '[{"n": 1500}]': [{"n": 1500}],
    "[]": [],
    "{}": {},
    " \n[1, 2]\n": [1, 2],
    '{"a": {"b": [null, true, 1.5]}}': {"a": {"b": [None, True, 1.5]}},
    '["é", "\\u00e9"]': ["é", "é"],
    "[{'n': 1500}]": [{"n": 1500}],
    "[{'n': None, 'ok': True}]": [{"n": None, "ok": True}],
    "{'a': 'it is', \"b\": \"it's\"}": {"a": "it is", "b": "it's"},
    "[('a', 1), ('b', 2)]": [["a", 1], ["b", 2]],
    "[(1,)]": [[1]],
    "['a\\n', 'b\\x41']": ["a\n", "bA"],
    "[1, 2,]": [1, 2],
    "[-1, 2.5e3]": [-1, 2500.0],
    str(ROWS): ROWS,
    json.dumps(ROWS): ROWS,
    "[{1: 'a'}]": "[{1: 'a'}]",
    "[b'x']": "[b'x']",
    "[{1, 2}]": "[{1, 2}]",
    "{1, 2}": "{1, 2}",
    "[Decimal('1.5')]": "[Decimal('1.5')]",
    "[__import__('os')]": "[__import__('os')]",
    "[x for x in y]": "[x for x in y]",
    "[1, 2": "[1, 2",
    '{"a": 1} and more': '{"a": 1} and more',
    '{"a": 1}\n{"a": 2}': '{"a": 1}\n{"a": 2}',
    '{"a": 1,}': {"a": 1},
    "{a: 1}": "{a: 1}",
    "[INFO] started": "[INFO] started",
    "{placeholder}": "{placeholder}",
    DEEP: DEEP,
    "{" * 3_000: "{" * 3_000,
    "[" + "1," * 20_000: "[" + "1," * 20_000,
    "[" + "'" * 40_001 + "]": "[" + "'" * 40_001 + "]",
    "42": "42",
    "1.5": "1.5",
    "true": "true",
    "None": "None",
    "null": "null",
    '"quoted"': '"quoted"',
    "(1, 2)": "(1, 2)",
    "": "",
    "   ": "   ",
    "A sentence.": "A sentence.",
    "Error: no such table: ordres": "Error: no such table: ordres",
    "Database error: no such column": "Database error: no such column",
    "ValueError: bad": "ValueError: bad",
    "name,price\nanvil,3": "name,price\nanvil,3",
    "# A title\n\n[a link](b)": "# A title\n\n[a link](b)",
    "<p>[1]</p>": "<p>[1]</p>",
    "\x00\x01": "\x00\x01",
}

# The same of tools that declare a schema: with what, the result, the value.
DECLARED: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
    (TEXT, declared({"content": "plain"}, "plain"), "plain"),
    (TEXT, declared({"content": "[1, 2]"}, "[1, 2]"), "[1, 2]"),
    (TEXT, declared({"content": '{"a": 1}'}, '{"a": 1}'), '{"a": 1}'),
    (TEXT, declared({"content": ""}, ""), ""),
    (TEXT, declared({"content": "x"}, '{"content": "x"}'), {"content": "x"}),
    (TEXT, block("[1, 2]"), "[1, 2]"),
    (ID, declared({"id": "a1"}, '{"id": "a1"}'), {"id": "a1"}),
    (ID, declared({"id": "a1"}, "Made a1."), {"id": "a1"}),
    (VALUE, declared({"result": [1, 2]}, "[1, 2]"), [1, 2]),
    (VALUE, declared({"result": ["a", "b"]}, "a", "b"), ["a", "b"]),
    (VALUE, declared({"result": []}), []),
    (NUMBER, declared({"result": 5}, "5"), 5),
    (NAMED, declared({"rows": [1]}, "[1]"), {"rows": [1]}),
    (PAIR, declared({"a": 1, "b": "x"}, '{"a": 1, "b": "x"}'), {"a": 1, "b": "x"}),
    (PAIR, block('{"a": 1, "b": "x"}'), {"a": 1, "b": "x"}),
    (STRING, declared({"result": "[1]"}, "[1]"), "[1]"),
    (STRING, block("[1]"), "[1]"),
    (WRAPPED, declared({"result": None}, "null"), None),
]


def table() -> tuple[list[dict[str, Any]], list[Any]]:
    tools = [{**READING, "answers": [text]} for text in UNDECLARED]
    tools += [{**READING, "outputSchema": s, "answers": [answer]} for s, answer, _ in DECLARED]
    named = [{"name": f"tool_{number}", **tool} for number, tool in enumerate(tools)]
    return named, [*UNDECLARED.values(), *(value for _, _, value in DECLARED)]


@pytest.mark.parametrize("before", ["", "import statistics\n"], ids=["monty", "cpython"])
async def test_each_answer_is_the_value_that_it_looks_like(
    running: MakeApp, tmp_path: Path, before: str
) -> None:
    tools, expected = table()
    assert len(tools) >= 60
    async with running({"box": scripted(tmp_path / "box.json", tools)}) as app:
        names = [tool["name"] for tool in tools]
        twice = [f"box.{name}() == box.{name}()" for name in names]
        result = await app.run(f"{before}[{', '.join(f'box.{name}()' for name in names)}]")
        same = await app.run(f"{before}[{', '.join(twice)}]")

    assert result.error is None, result.text[:500]
    assert result.tier == ("cpython" if before else "monty")
    assert result.value == expected
    assert same.value == [True] * len(tools)


def answers(*texts: str) -> dict[str, Any]:
    return {"name": "read", "answers": [*texts], **READING}


KINDS = {
    "values": (["[]", "[{'n': 1}]", '[{"n": 2}]', "[]"], [[], [{"n": 1}], [{"n": 2}], []]),
    "prose first": (["Hello", "[1]", "[1]"], ["Hello", "[1]", "[1]"]),
    "prose second": (["[1]", "Hello", "[1]"], [[1], "Hello", "[1]"]),
    "prose after three": (
        ["[1]", "[2]", "[3]", "None left", "[4]"],
        [[1], [2], [3], "None left", [4]],
    ),
    "an error between": (["[1]", "Error: no", "[1]"], [[1], "Error: no", [1]]),
    "nothing between": (["", "[1]"], ["", [1]]),
}


@pytest.mark.parametrize("name", KINDS)
async def test_a_tool_whose_answers_change_kind_has_one_rule(
    running: MakeApp, tmp_path: Path, name: str
) -> None:
    texts, expected = KINDS[name]
    async with running({"box": scripted(tmp_path / "box.json", [answers(*texts)])}) as app:
        result = await app.run(f"[box.read() for _ in range({len(texts)})]")

    assert result.value == expected


async def test_the_rule_outlives_the_process_until_the_tool_is_defined_anew(
    running: MakeApp, tmp_path: Path
) -> None:
    path = tmp_path / "box.json"
    async with running({"box": scripted(path, [answers("Hello")])}) as app:
        await app.run("box.read()")
        assert "-> str" in (await app.run("tools.describe('box')")).text
    async with running({"box": scripted(path, [answers("[1]")])}) as app:
        assert (await app.run("box.read()")).value == "[1]"
    changed = {**answers("[1]"), "description": "Now a list."}
    async with running({"box": scripted(path, [changed])}) as app:
        await app.app.catalog.learn(fresh=True)
        app.app.catalog.refresh()
        assert (await app.run("box.read()")).value == [1]
        assert "\nread(" in (found := (await app.run("tools.describe('box')")).text)
        assert "-> list[int]" in found


async def test_a_tool_that_answers_with_error_texts_says_so(
    running: MakeApp, tmp_path: Path
) -> None:
    async with running({"box": scripted(tmp_path / "b.json", [answers("Error: no")])}) as app:
        await app.run("box.read()")
        assert "may be an error text" in (await app.run("tools.describe('box.read')")).text


CONTENT = {
    "a subscript": 'r = f.read()\nr["content"]',
    "at once": 'f.read()["content"]',
    "get": 'r = f.read()\nr.get("content")',
    "get with a default": 'f.read().get("content", "")',
    "in an f-string": "f\"{f.read()['content']}\"",
    "awaited": 'r = await f.read()\nr["content"]',
    "gathered": (
        'import asyncio\nrs = await asyncio.gather(*[f.read() for _ in range(2)])\nrs[1]["content"]'
    ),
    "in a function": 'def read():\n    return f.read()["content"]\nread()',
    "as it is": "f.read()",
    "of a dict of its own": '{"content": f.read()}["content"]',
    "of a dict of lists": '{"content": [f.read()]}["content"][0]',
}


@pytest.mark.parametrize("before", ["", "import statistics\n"], ids=["monty", "cpython"])
async def test_the_content_of_a_text_is_the_text(
    running: MakeApp, tmp_path: Path, before: str
) -> None:
    read = {"name": "read", "outputSchema": TEXT, **READING}
    read["answers"] = [declared({"content": "said"}, "said")]
    async with running({"f": scripted(tmp_path / "f.json", [read])}) as app:
        found = {name: (await app.run(before + code)).text for name, code in CONTENT.items()}
        missing = await app.run(f'{before}r = f.read()\nr["content"]["x"]')

    assert found == dict.fromkeys(CONTENT, "said")
    assert 'r["content"]["x"]' in missing.text
    assert "_toolfold" not in missing.text


def test_only_whole_lists_and_objects_are_values() -> None:
    assert parse_text("[1]") == [1]
    assert kind_of("[1]") == "value"
    assert OPEN.after(["x"]).read("[1]") == "[1]"
