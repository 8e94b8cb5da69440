"""Runs that are gone on with: nothing that completed is done twice."""

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import MakeApp, Running, test_server

from toolfold.errors import InDoubt, NotFound, StateLost
from toolfold.execution.runtime import SessionRequest

pytestmark = pytest.mark.anyio


@pytest.fixture
def updates(tmp_path: Path) -> Path:
    return tmp_path / "updates.jsonl"


@pytest.fixture
def servers(updates: Path) -> dict[str, Any]:
    return {"records": test_server("records", updates, "100")}


@pytest.fixture
async def toolfold(running: MakeApp, servers: dict[str, Any]) -> AsyncIterator[Running]:
    async with running(servers, sandbox="monty") as opened:
        yield opened


def done(updates: Path) -> list[int]:
    return [json.loads(line)["id"] for line in updates.read_text().splitlines()]


async def cancelled(toolfold: Running, code: str, updates: Path, at: int, **options: Any) -> str:
    """Begin a run, cancel it when the upstream has seen so many updates; return its id."""
    begun: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await toolfold.app.runtime.run(code, on_begin=begun.append, **options)

        tasks.start_soon(run)
        with anyio.fail_after(60):
            while not updates.exists() or len(done(updates)) < at:
                await anyio.sleep(0.005)
        await anyio.sleep(0.03)  # until the answer is there, unless that takes its time
        tasks.cancel_scope.cancel()
    return begun[0]


SLOW = """
import records, time, random
random_part = random.random()
began = time.time()
for number in range(10):
    records.put(id=number, value=f"{random_part} {began} {time.time()}")
    time.sleep(0.2)
len("done")
"""


async def test_a_run_goes_on_where_it_ended(toolfold: Running, updates: Path) -> None:
    run_id = await cancelled(toolfold, SLOW, updates, at=4)
    before = len(done(updates))

    result = await toolfold.app.runtime.resume(run_id)

    assert result.success, result.text
    assert "calls answered from the record" in result.text
    assert 4 <= before < 10
    again = Counter(done(updates))
    assert set(again) == set(range(10))
    assert all(count == 1 for number, count in again.items() if number < before - 1)


async def test_clock_and_random_numbers_are_those_of_the_first_attempt(
    toolfold: Running, updates: Path
) -> None:
    run_id = await cancelled(toolfold, SLOW, updates, at=4)
    await toolfold.app.runtime.resume(run_id)

    values = [json.loads(line)["value"].split() for line in updates.read_text().splitlines()]
    assert len({(drawn, began) for drawn, began, _ in values}) == 1
    clocks = [float(clock) for *_, clock in values]
    assert clocks[-1] > clocks[0]


async def test_what_was_under_way_is_named_and_not_repeated(
    toolfold: Running, updates: Path
) -> None:
    code = "import records\nrecords.update(id=1, value='a')\nrecords.slow_update(id=2, seconds=3)"
    run_id = await cancelled(toolfold, code, updates, at=2)

    with pytest.raises(InDoubt) as doubt:
        await toolfold.app.runtime.resume(run_id)

    assert 'call 2, records.slow_update {"id":2,"seconds":3}' in str(doubt.value)
    assert f"toolfold runs resume {run_id} --repeat" in str(doubt.value)
    assert done(updates) == [1, 2]


@pytest.mark.parametrize(("decision", "expected"), [("repeat", [1, 2, 2]), ("skip", [1, 2])])
async def test_the_user_decides(
    toolfold: Running, updates: Path, decision: Any, expected: list[int]
) -> None:
    code = "import records\nrecords.update(id=1, value='a')\nrecords.slow_update(id=2, seconds=0.3)"
    run_id = await cancelled(toolfold, code, updates, at=2)

    result = await toolfold.app.runtime.resume(run_id, decision=decision)

    assert result.success, result.text
    assert done(updates) == expected


async def test_failures_are_replayed_too(toolfold: Running, updates: Path) -> None:
    code = """
import records, time
try:
    records.fail(words="no such row")
except RuntimeError as error:
    words = str(error)
records.put(id=1, value=words)
time.sleep(3)
"""
    run_id = await cancelled(toolfold, code, updates, at=1)
    with anyio.move_on_after(1):
        await toolfold.app.runtime.resume(run_id)

    assert len(done(updates)) == 1


async def test_values_of_our_own_modules_are_what_they_were(
    toolfold: Running, updates: Path
) -> None:
    code = """
import memory, records, time
memory.store("the sea is cold", tags=["sea"])
found = memory.search("sea")
records.put(id=len(found.memories), value=found.memories[0].preview)
time.sleep(1.2)
found.memories[0].preview
"""
    run_id = await cancelled(toolfold, code, updates, at=1)
    result = await toolfold.app.runtime.resume(run_id)

    assert result.text.startswith("the sea is cold"), result.text
    assert done(updates) == [1]


async def test_long_answers_are_kept_whole_until_the_end(
    running: MakeApp, updates: Path, home: Path
) -> None:
    many = {"records": test_server("records", updates, "5000")}
    code = """
import records, time
rows = records.list_records()
records.put(id=len(rows), value="x")
time.sleep(1.2)
rows[-1]["id"]
"""
    async with running(many, sandbox="monty") as toolfold:
        run_id = await cancelled(toolfold, code, updates, at=1)
        result = await toolfold.app.runtime.resume(run_id)

    assert result.text.startswith("4999"), result.text
    assert done(updates) == [5000]
    with sqlite3.connect(home / "data" / "runs.db") as journal:
        kept = journal.execute("SELECT length(text) FROM wholes").fetchall()
    assert len(kept) == 1  # of the attempt that ended; of that which came to its end none


async def test_a_run_that_does_something_else_is_stopped(toolfold: Running, updates: Path) -> None:
    code = """
import records, tools, time
known = len(tools.search("records update"))
records.put(id=known, value="x")
time.sleep(1.2)
"""
    run_id = await cancelled(toolfold, code, updates, at=1)
    toolfold.app.runtime._answerers.discovery.search = _other_search  # type: ignore[method-assign]

    result = await toolfold.app.runtime.resume(run_id)

    assert not result.success
    assert "cannot be resumed: the first time it made call 1, records.put" in result.text
    assert len(done(updates)) == 1


async def _other_search(*_args: Any, **_kwargs: Any) -> str:
    return "nothing"


async def test_a_run_is_resumed_in_its_session_as_it_was(toolfold: Running, updates: Path) -> None:
    mine = SessionRequest("mine")
    await toolfold.run("import records, time\nfirst = 10", session=mine)
    code = "records.put(id=first, value='a')\ntime.sleep(1.2)\nfirst = 20\nfirst"
    run_id = await cancelled(toolfold, code, updates, at=1, session=mine)
    await toolfold.run("first = 99", session=mine)

    result = await toolfold.app.runtime.resume(run_id)

    assert result.text.startswith("20"), result.text
    assert result.session == "mine"
    assert done(updates) == [10]
    assert "Another run changed first during this run" in result.text
    assert (await toolfold.run("first", session=mine)).text == "20"


async def test_a_session_that_has_not_gone_on_is_gone_on_with(
    toolfold: Running, updates: Path
) -> None:
    mine = SessionRequest("mine")
    await toolfold.run("import records, time\nfirst = 10", session=mine)
    code = "records.put(id=first, value='a')\ntime.sleep(1.2)\nfirst = 20"
    run_id = await cancelled(toolfold, code, updates, at=1, session=mine)

    result = await toolfold.app.runtime.resume(run_id)

    assert result.session == "mine"
    assert (await toolfold.run("first", session=mine)).text == "20"


async def test_without_the_state_it_began_with_nothing_is_run(
    toolfold: Running, updates: Path, home: Path
) -> None:
    mine = SessionRequest("mine")
    await toolfold.run("import records, time\nfirst = 10", session=mine)
    code = "records.put(id=first, value='a')\ntime.sleep(5)"
    run_id = await cancelled(toolfold, code, updates, at=1, session=mine)
    await toolfold.run("first = 99", session=mine)
    for start in home.rglob("starts/*"):
        start.unlink()

    with pytest.raises(StateLost, match="not kept"):
        await toolfold.app.runtime.resume(run_id)


async def test_a_run_resumed_twice_repeats_nothing(toolfold: Running, updates: Path) -> None:
    run_id = await cancelled(toolfold, SLOW, updates, at=3)
    begun: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def resume() -> None:
            await toolfold.app.runtime.resume(run_id, on_begin=begun.append)

        tasks.start_soon(resume)
        with anyio.fail_after(60):
            while max(done(updates)) < 6:
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()

    result = await toolfold.app.runtime.resume(begun[0])

    assert result.success, result.text
    counts = Counter(done(updates))
    assert set(counts) == set(range(10))
    assert sum(counts.values()) <= 12  # `put` may be repeated, once at each end


async def test_what_has_ended_is_not_resumed(toolfold: Running) -> None:
    result = await toolfold.run("1")

    with pytest.raises(NotFound, match="has ended"):
        await toolfold.app.runtime.resume(result.run_id)
    with pytest.raises(NotFound, match="No run has an id"):
        await toolfold.app.runtime.resume("feedfeed")


async def test_guest_code_cannot_decide_for_the_user(toolfold: Running, updates: Path) -> None:
    code = "import records\nrecords.slow_update(id=2, seconds=3)"
    run_id = await cancelled(toolfold, code, updates, at=1)

    for words in (f"'{run_id}'", f"'{run_id}', decision='repeat'", f"'{run_id}', 5, 'repeat'"):
        result = await toolfold.run(f"import runs\nruns.resume({words})")
        assert not result.success
    assert done(updates) == [2]


async def test_cached_finds_the_same_when_resumed(toolfold: Running, updates: Path) -> None:
    code = """
import records, time
rows = cached("rows", 60, lambda: records.list_records())
records.put(id=len(rows), value="x")
time.sleep(1.2)
records.put(id=len(rows) + 1, value="x")
"""
    run_id = await cancelled(toolfold, code, updates, at=1)
    result = await toolfold.app.runtime.resume(run_id)

    assert result.success, result.text
    assert done(updates) == [100, 101]


async def test_intents_go_when_a_run_has_ended(toolfold: Running, home: Path) -> None:
    await toolfold.run("import records\nrecords.update(id=1, value='a')")

    with sqlite3.connect(home / "data" / "runs.db") as journal:
        for table in ("intents", "wholes", "clocks"):
            assert journal.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
