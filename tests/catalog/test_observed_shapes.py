"""What tools were seen to return is kept, shared, and for some public servers known beforehand."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, scripted

from toolfold.catalog import observed_shapes
from toolfold.catalog.observed_shapes import (
    SHIPPED,
    ObservedShapes,
    definition_digest,
    from_json,
    render,
    shape_of,
    stable,
)
from toolfold.catalog.observed_shapes import merge as merge_shapes
from toolfold.catalog.textrules import OPEN, TextRule
from toolfold.catalog.textrules import from_json as rule_from_json
from toolfold.catalog.tool import ListedTool


def listed(name: str, description: str = "") -> ListedTool:
    return ListedTool(name=name, description=description, input_schema={"type": "object"})


def learn(shapes: ObservedShapes, name: str, value: Any) -> None:
    shapes.settle(listed(name), shapes.rule(listed(name)).after([json.dumps(value)]))
    shapes.observe(name, value)
    shapes.save()


def test_who_shares_a_file_keeps_what_others_learned_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    one, other = ObservedShapes(path), ObservedShapes(path)
    learn(one, "rows", [{"n": 1}])
    learn(other, "names", ["Ada"])

    kept = ObservedShapes(path)

    assert kept.short("rows") == "list[{n}]"
    assert kept.short("names") == "list[str]"
    assert kept.rule(listed("rows")) == TextRule(values=1)


def test_a_tool_that_is_defined_as_a_recorded_one_is_known_before_its_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = ObservedShapes(tmp_path / "recorded.json")
    learn(recorder, "rows", [{"n": 1}])
    entry = json.loads((tmp_path / "recorded.json").read_text())["rows"]
    known = {f"rows {entry.pop('definition')}": entry}
    monkeypatch.setattr(observed_shapes, "_shipped", lambda: known)

    shapes = ObservedShapes(tmp_path / "shapes.json")

    assert shapes.rule(listed("rows")) == TextRule(values=1)
    assert shapes.short("rows") == "list[{n}]"
    assert shapes.rule(listed("rows", "Another tool of that name.")) == OPEN
    assert shapes.short("rows") is None


def test_what_the_package_carries_can_be_read() -> None:
    entries = json.loads(SHIPPED.read_text())

    assert len(entries) > 60
    for entry in entries.values():
        rule = rule_from_json(entry["rule"]) if "rule" in entry else OPEN
        assert len(entry.get("example", "")) <= 91
        assert rule != OPEN or "shape" in entry
        if not rule.is_text and rule.unwraps is None:
            assert render(from_json(entry["shape"])).startswith(("list[", "{"))


async def test_a_recorded_text_is_shown_where_a_tool_is_defined_just_so(
    running: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = {"is_text": True, "may_fail": False, "unwraps": None, "values": 0}
    definitions = [
        ("tree", "Show the tree.", text),
        ("list", "List the files.", text),
        ("rows", "", {**text, "is_text": False}),
    ]
    known = {
        f"{name} {definition_digest(listed(name, said))}": {"rule": rule, "example": "[DIR] a\nb"}
        for name, said, rule in definitions
    }
    monkeypatch.setattr(observed_shapes, "_shipped", lambda: known)
    tools = [{"name": "tree", "description": "Show the tree."}, {"name": "list"}, {"name": "rows"}]
    async with running({"box": scripted(tmp_path / "box.json", tools)}) as app:
        shown = (await app.run("print(tools.describe('box'))")).text
        stub = (await app.run("print(tools.describe('box.tree'))")).text

    assert "tree() -> str like '[DIR] a\\nb'" in shown
    assert shown.count(" like ") == 1  # `list` is defined in another way; rows are no texts
    assert "answers like '[DIR] a\\nb'" in stub


def test_only_the_keys_of_all_answers_are_stable() -> None:
    shape = merge_shapes(shape_of([{"n": 1, "a": 2}]), shape_of([{"n": 1, "b": None}]))

    assert render(shape) == "list[{n: int, a?: int, b?: None}]"
    assert render(stable(shape)) == "list[{n: int}]"


LINK = {"type": "resource_link", "uri": "demo://a", "name": "a"}
LINKS = {"content": [{"type": "text", "text": "A link:"}, LINK]}
TOOLS = [
    {"name": "rows", "answers": ["[{'n': 1}]", "[]"]},
    {"name": "log", "answers": ["Commit history"]},
    {"name": "links", "answers": [LINKS]},
    {"name": "query", "answers": ["Database error: no such table: t", "[{'n': 1}]"]},
    {"name": "unused"},
]


async def test_what_was_learned_shows_in_every_form_here_and_after_a_restart(
    running: MakeApp, tmp_path: Path
) -> None:
    shop = scripted(tmp_path / "shop.json", TOOLS)
    every = "print(tools.describe('shop'))\nprint(tools.search('rows', limit=1))"
    query = "print(tools.describe('shop.query'))"
    async with running({"shop": shop}) as toolfold:
        before = await toolfold.run(every)
        failed = await toolfold.run("print(shop.rows(), shop.log(), shop.links(), shop.query())")
        noted = await toolfold.run(query)
        await toolfold.run("shop.query()")
        after = await toolfold.run(every)
    async with running({"shop": shop}) as toolfold:
        restarted = await toolfold.run(every)
        described = await toolfold.run(query)

    assert "->" not in before.text
    assert "Database error: no such table: t" in failed.text
    assert "# may be an error text" in noted.text
    assert after.text.splitlines()[1:6] == [
        "rows() -> list[{n}]",
        "log() -> str",
        "links() -> list",
        "query() -> list[{n}] or error text",
        "unused()",
    ]
    assert "shop.rows() -> list[{n}]" in after.text.splitlines()[6:]
    assert restarted.text == after.text
    assert "-> list[dict] | str:  # seen to return list[{n: int}]; may be" in described.text
