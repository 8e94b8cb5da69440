"""Calls that go past the SDK's session, over the streams of a real program."""

import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client.stdio import StdioServerParameters
from pydantic import ValidationError

from toolfold.catalog.large import Spool
from toolfold.catalog.messagelines import LineSplitter
from toolfold.catalog.stdio import ProgramCalls, stdio_streams

# Notes what it is told, and does with a call as its name says.
PROGRAM = """
import json, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    with open(sys.argv[1], "a") as told:
        told.write(line)
    message = json.loads(line)
    if message["method"] != "tools/call":
        continue
    number, name = message["id"], message["params"]["name"]
    fine = {"content": [{"type": "text", "text": name}]}
    if name == "die":
        sys.exit()
    if name == "report":
        token = message["params"]["_meta"]["progressToken"]
        about = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        say(method="notifications/progress", params=about)
    if name == "fail":
        say(id=number, error={"code": -32001, "message": "no\\x1b[31m way", "data": [1]})
    elif name == "spell":
        say(id=str(number), result=fine)
    elif name == "odd":
        say(id=number, result=["what"])
    elif name == "trouble":
        fine["content"][0]["text"] = "a\\x1b[31mb"
        say(id=number, result=fine | {"isError": True})
    elif name != "wait":
        say(id=12, result=fine)
        say(id=number, result=fine | {"resultType": "later"})
"""


@asynccontextmanager
async def running(told: Path) -> AsyncIterator[tuple[ProgramCalls, list[Any]]]:
    """Run the program, and read what it says as the SDK does; what is not ours comes too."""
    program = StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, str(told)])
    lines = LineSplitter(1 << 20, 1 << 20, Spool)
    others: list[Any] = []
    with tempfile.TemporaryFile("w+") as log:
        async with (
            stdio_streams(
                program,
                log=log,
                lines=lines,
                fold=lambda _spool: b"",
                on_too_long=lambda: None,
                on_gone=lambda: None,
            ) as (reader, _writer),
            anyio.create_task_group() as tasks,
        ):

            async def read() -> None:
                async for each in reader:
                    others.append(each)  # noqa: PERF401  # it is cancelled in the end

            tasks.start_soon(read)
            with anyio.fail_after(60):
                yield reader.calls, others
            tasks.cancel_scope.cancel()


def text(result: Any) -> str:
    return str(result.content[0].text)


async def test_answers_come_back_and_what_is_not_ours_is_passed_on(tmp_path: Path) -> None:
    async with running(tmp_path / "told") as (calls, others):
        said = [text(await calls.call({"name": name}, None)) for name in ("one", "spell")]

    assert said == ["one", "spell"]
    assert [each.message.id for each in others] == [12]


async def test_progress_is_heard(tmp_path: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, note: str | None) -> None:
        heard.append((done, total, note))
        raise RuntimeError("a listener that fails costs no answer")

    async with running(tmp_path / "told") as (calls, _):
        assert text(await calls.call({"name": "report"}, hear)) == "report"

    assert heard == [(1, 2, "half")]


async def test_errors_are_those_of_the_program_and_plain(tmp_path: Path) -> None:
    async with running(tmp_path / "told") as (calls, _):
        with pytest.raises(MCPError, match=r"^no way$") as raised:
            await calls.call({"name": "fail"}, None)
        trouble = await calls.call({"name": "trouble"}, None)
        with pytest.raises(ValidationError):
            await calls.call({"name": "odd"}, None)

    assert (raised.value.code, raised.value.error.data) == (-32001, [1])
    assert (trouble.is_error, text(trouble)) == (True, "ab")


async def test_a_call_that_nobody_waits_for_is_withdrawn(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with running(told) as (calls, _):
        with anyio.move_on_after(0.2) as scope:
            await calls.call({"name": "wait"}, None)
        assert text(await calls.call({"name": "after"}, None)) == "after"

    sent = [json.loads(line) for line in told.read_text().splitlines()]
    assert scope.cancelled_caught
    assert [each["method"] for each in sent] == [
        "tools/call",
        "notifications/cancelled",
        "tools/call",
    ]
    assert sent[1]["params"]["requestId"] == sent[0]["id"]


async def test_a_program_that_ends_answers_those_who_wait(tmp_path: Path) -> None:
    async with running(tmp_path / "told") as (calls, _):
        for name in ("die", "again"):
            with pytest.raises(MCPError, match=r"^Connection closed$"):
                await calls.call({"name": name}, None)
