"""Approvals through real MCP clients: that can ask, that cannot, that are late."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from support import MakeApp, scripted, test_server

from toolfold.entrypoints.mcp.server import make_server
from toolfold.execution.trust.asked_clients import AUTOMATIC_S

pytestmark = pytest.mark.anyio

MODES = ["legacy", "2026-07-28"]
FIFTY = """
import records
for number in range(50):
    records.update(id=number, value="gone")
"fifty"
"""


@pytest.fixture
def updates(tmp_path: Path, home: Path) -> Path:
    rules = home / "config" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[[policy]]\naction = "ask"\ntools = "records.update"\n')
    return tmp_path / "updates.jsonl"


def done(updates: Path) -> list[int]:
    lines = updates.read_text().splitlines() if updates.exists() else []
    return [json.loads(line)["id"] for line in lines]


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def user(answer: types.ElicitResult, after_s: float = 0) -> tuple[Callable[..., Any], list[str]]:
    """Return one who answers every question so, and what they were asked."""
    asked: list[str] = []

    async def reply(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        await anyio.sleep(after_s)
        return answer

    return reply, asked


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_can_ask_puts_one_question(
    mode: str, running: MakeApp, updates: Path
) -> None:
    yes = types.ElicitResult(action="accept", content={"approve": True, "most": 50})
    reply, asked = user(yes)
    async with running({"records": test_server("records", updates, "60")}) as toolfold:
        server = make_server(toolfold.app, client="me")
        async with Client(server, mode=mode, elicitation_callback=reply) as client:
            result = await client.call_tool("execute_code", {"code": FIFTY})

    assert text_of(result) == "fifty"
    assert len(asked) == 1
    assert "records.update: 1 call so far" in asked[0]
    assert done(updates) == list(range(50))


@pytest.mark.parametrize("mode", MODES)
async def test_what_its_user_declines_is_not_done(
    mode: str, running: MakeApp, updates: Path
) -> None:
    reply, asked = user(types.ElicitResult(action="decline"))
    async with running({"records": test_server("records", updates, "60")}) as toolfold:
        server = make_server(toolfold.app, client="me")
        async with Client(server, mode=mode, elicitation_callback=reply) as client:
            result = await client.call_tool("execute_code", {"code": FIFTY})

    assert result.is_error
    assert "The user rejected records.update" in text_of(result)
    assert len(asked) == 1
    assert done(updates) == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_is_told_how_to_decide(
    mode: str, running: MakeApp, updates: Path
) -> None:
    async with running({"records": test_server("records", updates, "60")}) as toolfold:
        async with Client(make_server(toolfold.app, client="me"), mode=mode) as client:
            result = await client.call_tool("execute_code", {"code": FIFTY})

    assert "toolfold approve " in text_of(result)
    assert done(updates) == []


@pytest.mark.parametrize("mode", MODES)
async def test_who_answers_late_finds_the_run_frozen(
    mode: str, running: MakeApp, updates: Path
) -> None:
    yes = types.ElicitResult(action="accept", content={"approve": True})
    reply, _ = user(yes, after_s=2)
    servers = {"records": test_server("records", updates, "60")}
    async with running(servers, limits__ask_s=0.5) as toolfold:
        server = make_server(toolfold.app, client="me")
        async with Client(server, mode=mode, elicitation_callback=reply) as client:
            with anyio.move_on_after(60), suppress(Exception):  # which may refuse a late answer
                await client.call_tool("execute_code", {"code": FIFTY})
        pending = toolfold.app.border.trust.approvals.pending()

    assert [each.tool for each in pending] == ["records.update"]
    assert done(updates) == []


async def test_a_run_that_waits_alive_tells_its_client_how_to_decide(
    running: MakeApp, updates: Path
) -> None:
    servers = {"records": test_server("records", updates, "60")}
    async with running(servers, limits__answer_s=3) as toolfold:
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        async with Client(make_server(toolfold.app, client="me")) as client:
            waiting = await client.call_tool("execute_code", {"code": f"import enum\n{FIFTY}"})
            approvals = toolfold.app.border.trust.approvals
            [question] = approvals.pending()
            ask = f"import runs\nprint(runs.get({question.attempt!r}, %s)['text'])"
            open_still = await client.call_tool("execute_code", {"code": ask % 0})
            approvals.decide(question.id, "approved", most=50, by="a test")
            ended = await client.call_tool("execute_code", {"code": ask % 30})

    for told in (waiting, open_still):
        assert f"toolfold approve {question.attempt}" in text_of(told)
        assert "The run is paused" in text_of(told)
    assert "fifty" in text_of(ended)
    assert done(updates) == list(range(50))


@pytest.mark.parametrize("tier", ["monty", "cpython"])
async def test_one_waits_while_ten_others_work_on_in_its_session_and_then_goes_on(
    running: MakeApp, updates: Path, tier: str
) -> None:
    needs = "import enum\n" if tier == "cpython" else ""
    waits = f"{needs}print('so far')\nmine = [1]\nrecords.update(id=7, value='x')\nlate = 2"
    servers = {"records": test_server("records", updates, "60")}
    async with running(servers, limits__answer_s=60) as toolfold:
        if tier == "cpython" and not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        server = make_server(toolfold.app, client="me", session="me")
        async with Client(server) as client:

            async def run(code: str) -> str:
                return text_of(await client.call_tool("execute_code", {"code": code}))

            await run(f"{needs}before = 'kept'")
            with anyio.fail_after(30):  # long before its answer would be due
                told = await run(waits)
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(run, f"{needs}other_{number} = [before, {number}]")
            approvals = toolfold.app.border.trust.approvals
            [question] = approvals.pending()
            await toolfold.app.runs.approve(question, most=1, always=False, by="a test")
            ended = await run(f"runs.get({question.attempt!r}, 30)['state']")
            names = ", ".join(f"other_{number}[1]" for number in range(10))
            found = await run(f"{needs}[before, mine, late, {names}]")

    assert told.startswith("so far\n")
    assert f"toolfold approve {question.attempt}" in told
    assert "done" in ended
    assert json.loads(found) == ["kept", [1], 2, *range(10)]
    assert done(updates) == [7]


REMOVE = {"name": "remove", "annotations": {"destructiveHint": True}, "answers": ["removed"]}
NO = types.ElicitResult(action="decline")
YES = types.ElicitResult(action="accept", content={"approve": True})


async def removed(
    running: MakeApp, tmp_path: Path, reply: Callable[..., Any] | None, **settings: Any
) -> str:
    """Return what comes of calling a destructive tool that no rule of the user's is about."""
    async with running({"box": scripted(tmp_path / "box.json", [REMOVE])}, **settings) as toolfold:
        server = make_server(toolfold.app, client="me")
        async with Client(server, mode="legacy", elicitation_callback=reply) as client:
            return text_of(await client.call_tool("execute_code", {"code": "box.remove()"}))


async def test_a_local_client_that_cannot_ask_has_decided_itself(
    running: MakeApp, tmp_path: Path
) -> None:
    assert await removed(running, tmp_path, None) == "removed"


async def test_always_asks_although_nobody_can_be_asked(running: MakeApp, tmp_path: Path) -> None:
    text = await removed(running, tmp_path, None, approvals="always")

    assert text.startswith("Needs approval: box.remove {}: its server marks it")
    assert "toolfold approve" in text


async def test_never_asks_nobody(running: MakeApp, tmp_path: Path) -> None:
    reply, asked = user(NO)

    assert await removed(running, tmp_path, reply, approvals="never") == "removed"
    assert asked == []


async def test_a_client_that_can_ask_does(running: MakeApp, tmp_path: Path) -> None:
    reply, asked = user(YES)

    assert await removed(running, tmp_path, reply) == "removed"
    assert len(asked) == 1
    refused, _ = user(NO, after_s=2 * AUTOMATIC_S)
    assert "The user rejected box.remove" in await removed(running, tmp_path, refused)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_client_that_answers_by_itself_is_not_asked_again(
    running: MakeApp, tmp_path: Path, action: Any
) -> None:
    reply, asked = user(types.ElicitResult(action=action))

    assert await removed(running, tmp_path, reply) == "removed"
    assert len(asked) == 2  # once more, to be sure that no person refused
    assert await removed(running, tmp_path, reply) == "removed"
    assert len(asked) == 2


async def test_who_refuses_too_fast_and_then_as_a_person_is_taken_at_their_word(
    running: MakeApp, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def reply(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        await anyio.sleep(2 * AUTOMATIC_S * (len(asked) - 1))
        return NO

    assert "The user rejected box.remove" in await removed(running, tmp_path, reply)
    assert len(asked) == 2


async def test_who_allows_a_tool_for_good_is_not_asked_in_later_runs(
    running: MakeApp, tmp_path: Path
) -> None:
    forms: list[Any] = []

    async def reply(_context: Any, params: Any) -> types.ElicitResult:
        forms.append(params.requested_schema)
        return types.ElicitResult(action="accept", content={"approve": True, "always": True})

    assert await removed(running, tmp_path, reply) == "removed"
    assert await removed(running, tmp_path, reply) == "removed"
    [form] = forms
    assert form["properties"]["always"]["title"] == "Always in this project"


async def test_a_rule_of_the_users_asks_whatever_the_client_can(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text('[[policy]]\naction="ask"\ntools="box.*"\n')
    reply, _ = user(NO)

    assert "Needs approval: box.remove" in await removed(running, tmp_path, None)
    assert "The user rejected" in await removed(running, tmp_path, reply)
