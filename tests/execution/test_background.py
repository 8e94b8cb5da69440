"""Runs that go on after their client was answered, what they say of their progress, `cached`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support import MakeApp, Running, test_server

from toolfold.entrypoints.mcp.server import make_server
from toolfold.journal.runs import Origin, Run

pytestmark = pytest.mark.anyio


@pytest.fixture
def updates(tmp_path: Path) -> Path:
    return tmp_path / "updates.jsonl"


@pytest.fixture
async def toolfold(running: MakeApp, updates: Path) -> AsyncIterator[Running]:
    servers = {"records": test_server("records", updates, "20")}
    async with running(servers, limits__answer_s=0.5) as opened:
        yield opened


async def execute(client: Client, code: str, **options: Any) -> str:
    result = await client.call_tool("execute_code", {"code": code}, **options)
    return "\n".join(block.text for block in result.content if block.type == "text")


def run_id_in(text: str) -> str:
    return text.partition("Its id is ")[2].partition(":")[0]


async def test_a_long_run_is_answered_and_picked_up(running: MakeApp) -> None:
    async with (
        running({}, limits__answer_s=2) as toolfold,
        Client(make_server(toolfold.app, client="me", session="me")) as client,
    ):
        text = await execute(client, "import time\ntime.sleep(5)\nanswer = 42\nanswer")
        assert text.startswith("The run continues after 2 s. Its id is ")
        run_id = run_id_in(text)
        with anyio.fail_after(60):
            picked = await execute(client, f"import runs\nruns.get('{run_id}', wait_s=0)")
            assert '"state": "running"' in picked
            picked = ""
            while '"done"' not in picked:
                picked = await execute(client, f"import runs\nruns.get('{run_id}', wait_s=0.2)")
        # Its variables are where the next run finds them.
        later = await execute(client, "answer")

    assert '"text": "42"' in picked
    assert later == "42"


HEARS: Any = {"progress_token": 1}  # what a client says that waits for long


async def until_over(toolfold: Running, run_id: str) -> None:
    run = toolfold.app.shared.background_runs.find(run_id)
    assert run is not None
    with anyio.fail_after(60):
        await run.over.wait()


LONG = "import time\ntime.sleep(1.2)\nprint('tests: 7 passed')"


async def test_the_next_call_of_any_kind_brings_the_result_along(
    running: MakeApp, updates: Path
) -> None:
    servers = {"records": test_server("records", updates, "20")}
    settings = {"limits__answer_s": 3, "search_tools": True}
    async with (
        running(servers, **settings) as toolfold,
        Client(make_server(toolfold.app, client="me")) as client,
        Client(make_server(toolfold.app, client="other")) as other,
    ):
        run_id = run_id_in(await execute(client, LONG.replace("1.2", "5")))
        early = await execute(client, "1")
        await until_over(toolfold, run_id)
        others = await execute(other, "1")
        found = await client.call_tool("search_tools", {"query": "records"})
        later = await execute(client, "1")

    assert early == others == later == "1"
    assert found.content[-1].text == (
        f"The run {run_id}, which continued in the background, has ended:\ntests: 7 passed"
    )


async def test_a_long_job_costs_two_calls_and_no_poll(running: MakeApp) -> None:
    """The second waits for as long as the client hears that it does."""
    code = LONG.replace("1.2", "9")
    async with (
        running({}, limits__answer_s=3) as toolfold,
        Client(make_server(toolfold.app, client="me")) as client,
    ):
        run_id = run_id_in(await execute(client, code, meta=HEARS))
        wait = f"import runs\nruns.wait('{run_id}')['text']"
        picked = await execute(client, wait, meta=HEARS)
        later = await execute(client, "1")

    assert picked == "tests: 7 passed"
    assert later == "1"  # it is not said twice


async def test_a_client_that_does_not_hear_of_progress_is_answered_in_time(
    running: MakeApp,
) -> None:
    async with (
        running({}, limits__answer_s=3) as toolfold,
        Client(make_server(toolfold.app, client="me")) as client,
    ):
        run_id = run_id_in(await execute(client, LONG.replace("1.2", "8")))
        picked = await execute(client, f"import runs\nruns.wait('{run_id}')['state']")

    assert picked == "running"


async def test_who_gives_up_waiting_does_not_end_the_run(toolfold: Running) -> None:
    async with Client(make_server(toolfold.app, client="me")) as client:
        run_id = run_id_in(await execute(client, LONG.replace("1.2", "2.5")))
        wait = f"import runs\nruns.wait('{run_id}')"
        with anyio.move_on_after(0.8):
            await execute(client, wait, meta=HEARS)
        await until_over(toolfold, run_id)
        later = await execute(client, "1")

    assert later.endswith("tests: 7 passed")


async def test_what_is_over_or_unknown_is_not_waited_for(running: MakeApp) -> None:
    async with running({}) as toolfold:
        over = await toolfold.run("1")
        code = "import runs\nruns.wait('{}')"
        with anyio.fail_after(60):
            assert '"done"' in (await toolfold.run(code.format(over.run_id))).text
            assert "no run" in (await toolfold.run(code.format("0" * 16))).text


async def test_a_run_that_goes_on_can_be_stopped(toolfold: Running, updates: Path) -> None:
    code = "import records, time\nfor n in range(100):\n    records.put(id=n, value='')\n"
    code += "    time.sleep(0.1)"
    async with Client(make_server(toolfold.app, client="me")) as client:
        run_id = run_id_in(await execute(client, code))
        stopped = await execute(client, f"import runs\nruns.stop('{run_id}')")
        count = len(updates.read_text().splitlines())
        await anyio.sleep(0.4)

    assert '"state": "cancelled"' in stopped
    assert len(updates.read_text().splitlines()) == count < 50


async def test_a_cancelled_request_stops_the_run_before_its_next_call(
    toolfold: Running, updates: Path
) -> None:
    code = "import records, time\nfor n in range(100):\n    records.put(id=n, value='')\n"
    code += "    time.sleep(0.1)"
    async with Client(make_server(toolfold.app, client="me")) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(execute, client, code)
            await happens(updates.exists)
            tasks.cancel_scope.cancel()
        await happens(lambda: newest(toolfold).ending is not None)
        count = len(updates.read_text().splitlines())
        await anyio.sleep(0.3)

    assert len(updates.read_text().splitlines()) == count < 100


async def test_a_client_that_left_stops_its_runs(toolfold: Running, updates: Path) -> None:
    code = "import records, time\nfor n in range(100):\n    records.put(id=n, value='')\n"
    code += "    time.sleep(0.05)"
    async with Client(make_server(toolfold.app, client="me")) as client:
        await execute(client, code)
        await happens(updates.exists)
    toolfold.app.shared.background_runs.leave("me")
    await happens(lambda: newest(toolfold).ending is not None)
    count = len(updates.read_text().splitlines())
    await anyio.sleep(0.3)

    assert len(updates.read_text().splitlines()) == count < 100


def newest(toolfold: Running) -> Run:
    return toolfold.app.shared.journal.find("")


async def happens(what: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not what():
            await anyio.sleep(0.01)


async def test_runs_of_others_are_not_seen(toolfold: Running) -> None:
    theirs = await toolfold.run("1", origin=Origin(client="key:them", project="/p"))
    local = await toolfold.run("1", origin=Origin(client="relay-1", project="/p"))
    code = "import runs\nruns.get('{}')['state']"

    async def seen(run_id: str, client: str, project: str) -> bool:
        origin = Origin(client=client, project=project)
        return (await toolfold.run(code.format(run_id), origin=origin)).success

    assert await seen(theirs.run_id, "key:them", "/p")
    assert not await seen(theirs.run_id, "key:us", "/p")
    assert not await seen(theirs.run_id, "relay-1", "/p")
    assert not await seen(local.run_id, "key:us", "/p")
    assert await seen(local.run_id, "relay-2", "/p")
    assert not await seen(local.run_id, "relay-2", "/other")


async def test_progress_reaches_the_client_and_the_journal(running: MakeApp) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None, note: str | None) -> None:
        heard.append((done, total, note))

    code = "import time\nfor n in range(3):\n    progress(n + 1, 3, note=f'row {n}')\n"
    code += "    time.sleep(0.05)"
    async with (
        running({}) as toolfold,
        Client(make_server(toolfold.app, client="me")) as client,
    ):
        await execute(client, code, progress_callback=listen)
        run = newest(toolfold)

    assert heard[0] == (1, 3, "row 0")
    assert heard[-1] == (3, 3, "row 2")
    assert run.progress is not None
    assert (run.progress.done, run.progress.total, run.progress.note) == (3, 3, "row 2")


@pytest.mark.parametrize(
    "call",
    ["progress()", "progress('a')", "progress(1, 'b')", "progress(1, 2, 3, 4)", "progress(x=1)"],
)
async def test_progress_says_how_it_is_called(toolfold: Running, call: str) -> None:
    result = await toolfold.run(f"f = progress\nf{call.removeprefix('progress')}")

    assert not result.success
    assert "progress" in result.text


async def test_cached_calls_once_within_its_time(toolfold: Running) -> None:
    code = """
import records, time
calls = []
def rows():
    calls.append(1)
    return records.list_records()
first = cached("rows", 60, rows)
second = cached("rows", 60, rows)
time.sleep(0.1)
third = cached("rows", 0.05, rows)
[len(calls), first == second == third, len(first)]
"""
    result = await toolfold.run(code)

    assert result.text == "[2, true, 20]"


async def test_cached_lasts_over_runs_and_tiers(toolfold: Running) -> None:
    await toolfold.run("cached('k', 60, lambda: {'a': [1]})")

    assert (await toolfold.run("cached('k', 60, lambda: 'other')")).text == '{"a": [1]}'
    confined = await toolfold.run("import enum\ncached('k', 60, lambda: 'other')")
    assert confined.text == '{"a": [1]}'


async def test_cached_refuses_what_changes_something(toolfold: Running, updates: Path) -> None:
    code = """
import records
try:
    cached("k", 60, lambda: records.update(id=1, value="a"))
except Exception as error:
    words = str(error)
records.update(id=2, value="b")
words
"""
    result = await toolfold.run(code)

    assert "records.update was not called: cached() is for calls that only read" in result.text
    assert len(updates.read_text().splitlines()) == 1


async def test_a_failure_is_not_cached(toolfold: Running) -> None:
    code = """
def fail():
    raise ValueError("no")
try:
    cached("k", 60, fail)
except ValueError:
    pass
cached("k", 60, lambda: 3)
"""
    assert (await toolfold.run(code)).text == "3"
