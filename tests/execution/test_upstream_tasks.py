"""Calls that take long: tasks of both protocols, progress, logs, and what cancelling does."""

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support import MakeApp, test_server

from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.entrypoints.mcp.server import make_server

pytestmark = pytest.mark.anyio

ERAS = ["tasks", "extension", "plain"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "jobs.log"


def asked(log: Path) -> list[str]:
    """Return the methods that the server was asked for."""
    return [json.loads(line)[1] for line in log.read_text().splitlines()] if log.exists() else []


def entry(era: str, log: Path, **more: Any) -> dict[str, Any]:
    return {"ci": {**test_server("task_jobs", era, "--log", log), **more}}


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_takes_its_time(running: MakeApp, log: Path, era: str) -> None:
    """Longer than a call may take in silence, and longer than a run may take at all."""
    servers = entry(era, log, timeout_s=1)
    async with running(servers, limits__wall_time_s=1.5) as toolfold:
        result = await toolfold.run("import ci\nci.run_tests(seconds=3)['passed']")

    assert result.text == "7"
    if era != "plain":
        assert "tasks/get" in asked(log)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_has_an_end_all_the_same(running: MakeApp, log: Path, era: str) -> None:
    servers = entry(era, log, timeout_s=0.5)
    async with running(servers, limits__task_s=1) as toolfold:
        begun = time.monotonic()
        result = await toolfold.run("import ci\nci.run_tests(seconds=60)")

    assert not result.success
    assert "did not" in result.text
    assert time.monotonic() - begun < 10
    if era != "plain":
        assert "tasks/cancel" in asked(log)


@pytest.mark.parametrize("era", ["tasks", "extension"])
async def test_a_task_that_fails_says_why(running: MakeApp, log: Path, era: str) -> None:
    async with running(entry(era, log)) as toolfold:
        result = await toolfold.run("import ci\nci.fail(seconds=0.2)")

    assert not result.success
    assert "the runner is gone" in result.text


@pytest.mark.parametrize("era", ["tasks", "extension"])
async def test_a_task_asks_the_user(running: MakeApp, log: Path, era: str) -> None:
    questions: list[Question] = []

    async def put(question: Question) -> Reply:
        questions.append(question)
        return Reply(action="accept", content={"branch": "main"})

    async with running(entry(era, log)) as toolfold:
        ask = Elicitor(user="me", put=put)
        result = await toolfold.run("import ci\nci.ask(seconds=0.4)['reply']", ask=ask)

    assert result.text == "main", result.text
    assert [each.message for each in questions] == ["Which branch?"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("prelude", ["", "import enum\n"], ids=["monty", "cpython"])
async def test_cancelling_reaches_the_server_within_a_second(
    running: MakeApp, log: Path, era: str, prelude: str
) -> None:
    heard = {"plain": "notifications/cancelled"}.get(era, "tasks/cancel")
    async with running(entry(era, log)) as toolfold, anyio.create_task_group() as tasks:
        tasks.start_soon(toolfold.run, f"{prelude}import ci\nci.run_tests(seconds=60)")
        with anyio.fail_after(30):
            while "tools/call" not in asked(log) or (
                era != "plain" and "tasks/get" not in asked(log)
            ):
                await anyio.sleep(0.02)
        cancelled_at = time.time()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(5):
            while heard not in asked(log):
                await anyio.sleep(0.01)

    moments = [json.loads(line) for line in log.read_text().splitlines()]
    took_s = next(at for at, method, _ in moments if method == heard) - cancelled_at
    assert took_s < 1.0


@pytest.mark.parametrize("era", ERAS)
async def test_what_the_server_says_reaches_the_client(
    running: MakeApp, log: Path, era: str
) -> None:
    heard: list[str] = []

    async def listen(_done: float, _total: float | None, note: str | None) -> None:
        heard.append(note or "")

    async with (
        running(entry(era, log)) as toolfold,
        Client(make_server(toolfold.app, client="me")) as client,
    ):
        code = {"code": "import ci\nci.run_tests(seconds=1)"}
        await client.call_tool("execute_code", code, progress_callback=listen)

    words = "% of the tests" if era != "plain" else "tests"
    assert any(words in each and each.startswith("ci.run_tests") for each in heard), heard
    if era == "plain":
        assert any("compiling the tests" in each for each in heard), heard


async def test_other_calls_have_their_turn_while_a_task_is_under_way(
    running: MakeApp, log: Path
) -> None:
    async with running(entry("tasks", log, concurrency=1)) as toolfold:
        code = """
import asyncio, ci
both = await asyncio.gather(ci.run_tests(seconds=1.5), ci.run_tests(seconds=1.5))
[each["passed"] for each in both]
"""
        result = await toolfold.run(code)

    calls = [json.loads(line)[0] for line in log.read_text().splitlines() if '"tools/call"' in line]
    assert result.text == "[7, 7]"
    assert calls[1] - calls[0] < 1.0
