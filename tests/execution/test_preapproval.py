"""What the hook of a client says of programs before they run, and what the border does then."""

import json
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from support import MakeApp, Running, scripted

from toolfold.entrypoints.hooks.program_review import ProgramReview
from toolfold.entrypoints.mcp.server import TOOL_USE, make_server
from toolfold.execution.trust.asked_clients import AUTOMATIC_S
from toolfold.execution.trust.preapproval import Preapproval

pytestmark = pytest.mark.anyio

TOOLS = [
    {"name": "read", "annotations": {"readOnlyHint": True}, "answers": ["some text"]},
    {"name": "list", "annotations": {"readOnlyHint": True}, "answers": ['["a", "b"]']},
    {"name": "wipe", "annotations": {"destructiveHint": True}, "answers": ["wiped"]},
    {"name": "add", "annotations": {"destructiveHint": False}, "answers": ["added"]},
]
SKILL = "def tidy():\n    '''Tidy up.'''\n    import box\n    return box.wipe()\n"

READING = [
    "box.read()",
    "import box\nprint(box.read())",
    "import json\nnames = [each.upper() for each in box.list()]\nprint(json.dumps(names))",
    "from datetime import date\nprint(date(2026, 1, 1), box.read())",
    "def first(texts):\n    return texts[0]\nprint(first(box.list()))",
    "import asyncio\nprint(await asyncio.gather(box.read(), box.list()))",
    "print(tools.search('wipe'), tools.describe('box'))",
    "memory.search('ports')",
    "from collections import Counter\nsorted(Counter(box.read()), key=lambda each: -ord(each))",
    "try:\n    text = box.read()\nexcept ValueError as e:\n    print(e)\nprint(f'{text!r:>20}')",
]

HIDDEN = {
    "plainly": "box.wipe()",
    "not destructive": "box.add()",
    "getattr": "getattr(box, 'wi' + 'pe')()",
    "getattr by another name": "g = getattr\ng(box, 'wipe')()",
    "an alias of the tool": "w = box.wipe\nw()",
    "an alias of the module": "b = box\nb.wipe()",
    "import as": "import box as reader\nreader.wipe()",
    "from import": "from box import wipe\nwipe()",
    "from import as": "from box import wipe as read\nread()",
    "star import": "from box import *\nwipe()",
    "an import inside of a function": "def f():\n    import box as b\n    return b.wipe()\nf()",
    "exec": "exec('box.wipe()')",
    "eval": "eval('box.wipe()')",
    "compile": "exec(compile('box.wipe()', 'x', 'exec'))",
    "a dict of functions": "{'r': box.read, 'w': box.wipe}['w']()",
    "a list of modules": "for each in [box]:\n    each.wipe()",
    "a decorator": "@box.wipe\ndef f():\n    pass",
    "a comprehension": "[w() for w in [box.wipe]]",
    "a comprehension that calls": "[box.wipe() for _ in range(1)]",
    "the default of a lambda": "(lambda w=box.wipe: w())()",
    "the default of a function": "def f(b=box):\n    return b.wipe()\nf()",
    "an f-string": "print(f'{box.wipe()}')",
    "a name in an f-string": "getattr(box, f'{\"wi\"}pe')()",
    "globals": "globals()['box'].wipe()",
    "vars": "vars(box)['wipe']()",
    "locals": "locals()['box'].wipe()",
    "__import__": "__import__('box').wipe()",
    "importlib": "import importlib\nimportlib.import_module('box').wipe()",
    "sys.modules": "import sys\nsys.modules['box'].wipe()",
    "a module of a module": "import json\njson.codecs.sys.modules['box'].wipe()",
    "globals of a function": "def f(): pass\nf.__globals__['box'].wipe()",
    "a pattern": "def f(): pass\nmatch f:\n    case object(__globals__=g): g['box'].wipe()",
    "attrgetter": "from operator import attrgetter\nattrgetter('wipe')(box)()",
    "methodcaller": "import operator\noperator.methodcaller('wipe')(box)",
    "partial": "from functools import partial\npartial(box.wipe)()",
    "map": "list(map(lambda f: f(), [box.wipe]))",
    "a class": "class Box:\n    tool = box.wipe\nBox.tool()",
    "unpacking": "(w,) = (box.wipe,)\nw()",
    "a walrus": "(w := box.wipe)()",
    "a rebound name": "box = box\nbox.wipe()",
    "another spelling": "toolfold.memory.store('x')",
    "a skill": "from skills import tidy\ntidy()",
    "a skill by its module": "import skills\nskills.tidy()",
    "a function of the session": "helper()",
    "an alias of the session": "there()",
    "a module of the session": "thing.wipe()",
    "a shadowed builtin of the session": "len('a')",
    "a name that is bound too late": "if False:\n    helper = None\nhelper()",
    "string templates": "import string\nstring.Formatter().get_field('0.wipe', (box,), {})[0]()",
    "a file of the process": "open('/proc/self/fd/3', 'wb').write(b'x')",
    "type hints": "import typing\ndef f(x: 'box.wipe()'): pass\ntyping.get_type_hints(f)",
    "not Python": "box.wipe(",
}
SESSION = "def helper():\n    return box.wipe()\nthere = box.wipe\nthing = box\nlen = box.wipe"


def payload(code: str, tool_use: str = "toolu_1", **more: str) -> dict[str, str]:
    return {"code": code, "tool_use_id": tool_use, "session_id": "talk", **more}


def meta(tool_use: str = "toolu_1") -> Any:
    return {TOOL_USE: tool_use}


def wiped(tmp_path: Path) -> int:
    log = tmp_path / "box.json.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return sum(json.loads(line)[0] in {"wipe", "add"} for line in lines)


async def prepared(toolfold: Running) -> None:
    """Leave a skill, and functions in a session."""
    await toolfold.app.catalog.learn()
    saved = await toolfold.run(f"skills.save('tidy', {SKILL!r}, 'Tidies up.')")
    assert saved.success, saved.text


async def test_a_program_that_only_reads_is_let_pass(running: MakeApp, tmp_path: Path) -> None:
    async with running({"box": scripted(tmp_path / "box.json", TOOLS)}) as toolfold:
        await toolfold.app.catalog.learn()
        async with Client(make_server(toolfold.app, client="me", session="me")) as client:
            for code in READING:
                answer = await ProgramReview(toolfold.app).answer(payload(code))
                result = await client.call_tool("execute_code", {"code": code}, meta=meta())

                assert answer == {"decision": "allow", "reason": "toolfold: it only reads."}, code
                assert not result.is_error, result


async def test_no_program_that_hides_a_write_is_let_pass_and_the_border_asks_all_the_same(
    running: MakeApp, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def decline(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="decline")

    servers = {"box": scripted(tmp_path / "box.json", TOOLS)}
    async with running(servers) as toolfold:
        app = toolfold.app
        await prepared(toolfold)
        server = make_server(app, client="me", session="talk")
        async with Client(server, mode="legacy", elicitation_callback=decline) as client:
            let_pass = {}
            for number, (name, code) in enumerate(HIDDEN.items()):
                inside = {"session": f"talk-{number}"}
                begun = await client.call_tool("execute_code", {"code": SESSION, **inside})
                assert not begun.is_error, begun
                answer = await ProgramReview(app).answer(payload(code, **inside))
                if answer.get("decision") == "allow":
                    let_pass[name] = answer
                unasked = Preapproval(scope=app.border.trust.scope)
                app.border.trust.preapprovals.note("toolu_1", code, inside["session"], unasked)
                given = {"code": code, **inside}
                await client.call_tool("execute_code", given, meta=meta())
                assert wiped(tmp_path) == 0, name

    assert let_pass == {}
    assert len(asked) >= 30  # the others failed before they could


async def test_variables_of_the_session_that_are_plain_are_no_reason_to_ask(
    running: MakeApp, tmp_path: Path
) -> None:
    begin = "import json\nrows = box.list()\nhelper = 1"
    go_on = "print(json.dumps(rows), box.read())"
    async with running({"box": scripted(tmp_path / "box.json", TOOLS)}) as toolfold:
        review = ProgramReview(toolfold.app)
        await toolfold.app.catalog.learn()
        async with Client(make_server(toolfold.app, client="me", session="me")) as client:
            first = await review.answer(payload(begin))
            unknown = await review.answer(payload("print(rows)", "toolu_2"))
            await client.call_tool("execute_code", {"code": begin}, meta=meta())
            elsewhere = await review.answer(payload("print(rows)", "toolu_3", session_id="other"))
            known = await review.answer(payload(go_on, "toolu_4"))

    assert first["decision"] == unknown["decision"] == known["decision"] == "allow"
    assert elsewhere["reason"].endswith("rows is the session's.")


async def test_what_the_user_was_asked_about_is_done_once_by_that_call_and_no_other(
    running: MakeApp, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def decline(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        await anyio.sleep(2 * AUTOMATIC_S)  # as a person does
        return types.ElicitResult(action="decline")

    code = "box.wipe()\nbox.wipe()\nprint('twice')"
    async with running({"box": scripted(tmp_path / "box.json", TOOLS)}) as toolfold:
        review = ProgramReview(toolfold.app)
        await toolfold.app.catalog.learn()
        server = make_server(toolfold.app, client="me", session="me")
        async with Client(server, mode="legacy", elicitation_callback=decline) as client:
            answer = await review.answer(payload(code))
            first = await client.call_tool("execute_code", {"code": code}, meta=meta())
            again = await client.call_tool("execute_code", {"code": code}, meta=meta())
            await review.answer(payload("box.add()", "toolu_2"))
            other = await client.call_tool("execute_code", {"code": code}, meta=meta("toolu_2"))

    assert answer == {"decision": "ask", "reason": "toolfold: it calls box.wipe."}
    assert not first.is_error
    assert again.is_error
    assert other.is_error
    assert len(asked) == 2
    assert wiped(tmp_path) == 2


async def test_a_condition_of_the_users_asks_although_the_tool_was_confirmed(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    rule = '[[policy]]\naction = "ask"\ntools = "box.wipe"\nmore_than = 1\n'
    (home / "config" / "policy.toml").write_text(rule)
    code = "box.wipe()\nbox.wipe()"
    async with running({"box": scripted(tmp_path / "box.json", TOOLS)}) as toolfold:
        await toolfold.app.catalog.learn()
        await ProgramReview(toolfold.app).answer(payload(code))
        async with Client(make_server(toolfold.app, client="me")) as client:
            result = await client.call_tool("execute_code", {"code": code}, meta=meta())

    assert "Needs approval: box.wipe" in str(result.content)
    assert wiped(tmp_path) == 1


@pytest.mark.parametrize("approvals", ["always", "never"])
async def test_the_hook_says_nothing_where_the_way_is_not_chosen(
    approvals: str, running: MakeApp, tmp_path: Path
) -> None:
    servers = {"box": scripted(tmp_path / "box.json", TOOLS)}
    async with running(servers, approvals=approvals) as toolfold:
        review = ProgramReview(toolfold.app)
        assert await review.answer(payload("box.read()")) == {}
        assert await review.answer(payload("box.wipe()")) == {}


async def test_the_hook_leaves_to_the_client_what_the_user_has_settled(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    allow = '[[policy]]\naction = "allow"\ntools = "box.wipe"\n'
    (home / "config" / "policy.toml").write_text(allow)
    async with running({"box": scripted(tmp_path / "box.json", TOOLS)}) as toolfold:
        review, trust = ProgramReview(toolfold.app), toolfold.app.border.trust
        await toolfold.app.catalog.learn()
        by_rule = await review.answer(payload("box.wipe()"))
        asked = await review.answer(payload("box.add()"))
        trust.approvals.allow_always(trust.scope, "box.add")
        for_good = await review.answer(payload("box.add()"))
        unasked = await review.answer(payload("box.add()", permission_mode="bypassPermissions"))

    assert (by_rule, for_good, unasked) == ({}, {}, {})
    assert asked["reason"] == "toolfold: it calls box.add."
