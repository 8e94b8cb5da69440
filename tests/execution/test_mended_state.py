"""Faults that a review found, each as it was found."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support import MakeApp, Running, test_server

from toolfold.catalog.catalog import Catalog
from toolfold.entrypoints.mcp.server import make_server
from toolfold.errors import BadInput, NotFound
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.sessions.folder import ParkedProcesses
from toolfold.journal.runs import Origin

pytestmark = pytest.mark.anyio

MINE = SessionRequest("mine")
SIX = """
import records, time
for n in range(6):
    records.put(id=n, value="")
    time.sleep(0.25)
"""


@pytest.fixture
def updates(tmp_path: Path) -> Path:
    return tmp_path / "updates.jsonl"


@pytest.fixture
async def toolfold(running: MakeApp, updates: Path) -> AsyncIterator[Running]:
    async with running({"records": test_server("records", updates, "20")}) as opened:
        yield opened


@pytest.fixture
async def confined(toolfold: Running) -> Running:
    works, why = await toolfold.app.tiers.examine()
    if not works:
        pytest.skip(f"There is no CPython tier here: {why}")
    return toolfold


def done(updates: Path) -> Counter[int]:
    lines = updates.read_text().splitlines() if updates.exists() else []
    return Counter(json.loads(line)["id"] for line in lines)


async def cancelled(toolfold: Running, code: str, updates: Path, at: int, **options: Any) -> str:
    begun: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await toolfold.app.runtime.run(code, on_begin=begun.append, **options)

        tasks.start_soon(run)
        with anyio.fail_after(60):
            while done(updates).total() < at:
                await anyio.sleep(0.005)
        await anyio.sleep(0.03)
        tasks.cancel_scope.cancel()
    return begun[0]


async def texts(toolfold: Running, *codes: str) -> list[str]:
    return [(await toolfold.run(code, session=MINE)).text for code in codes]


async def test_a_run_is_gone_on_with_once(toolfold: Running, updates: Path) -> None:
    run_id = await cancelled(toolfold, SIX, updates, at=3)
    await toolfold.app.runtime.resume(run_id)

    with pytest.raises(NotFound, match=f"{run_id} was resumed as [0-9a-f]+, which has ended"):
        await toolfold.app.runtime.resume(run_id)
    assert set(done(updates).values()) == {1}


async def test_two_cannot_go_on_with_a_run_together(toolfold: Running, updates: Path) -> None:
    run_id = await cancelled(toolfold, SIX, updates, at=2)
    refused: list[BadInput] = []

    async def resume() -> None:
        try:
            await toolfold.app.runtime.resume(run_id)
        except BadInput as error:
            refused.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resume)
        tasks.start_soon(resume)

    assert len(refused) == 1
    assert set(done(updates).values()) == {1}


async def test_nobody_goes_on_with_what_another_has_just_gone_on_with(
    toolfold: Running, updates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await cancelled(toolfold, SIX, updates, at=2)
    real = Catalog.learn

    async def learn_late(catalog: Catalog, modules: Any) -> None:
        monkeypatch.setattr(Catalog, "learn", real)
        result = await toolfold.app.runtime.resume(run_id)  # all of it, while we look
        assert result.success, result.text
        await real(catalog, modules)

    monkeypatch.setattr(Catalog, "learn", learn_late)
    with pytest.raises(BadInput, match="has just resumed"):
        await toolfold.app.runtime.resume(run_id)

    assert done(updates) == Counter(range(6))


async def test_a_dry_run_that_was_cancelled_does_not_become_a_real_one(
    toolfold: Running, updates: Path
) -> None:
    begun: list[str] = []
    code = "import records\nrecords.put(id=1, value='')\nwhile True:\n    pass"
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await toolfold.app.runtime.run(code, dry_run=True, on_begin=begun.append)

        tasks.start_soon(run)
        while not begun:
            await anyio.sleep(0.01)
        await anyio.sleep(0.5)
        tasks.cancel_scope.cancel()

    with pytest.raises(NotFound, match="was a dry run, and cannot be resumed"):
        await toolfold.app.runtime.resume(begun[0])
    assert not done(updates)


async def test_a_run_that_is_under_way_is_not_gone_on_with(
    toolfold: Running, updates: Path
) -> None:
    begun: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await toolfold.app.runtime.run(SIX, on_begin=begun.append)

        tasks.start_soon(run)
        with anyio.fail_after(60):
            while done(updates).total() < 2:
                await anyio.sleep(0.01)
        with pytest.raises(BadInput, match="is under way"):
            await toolfold.app.runtime.resume(begun[0])

    assert set(done(updates).values()) == {1}


async def test_a_lost_resumption_is_gone_on_with_by_the_first_id(
    toolfold: Running, updates: Path
) -> None:
    run_id = await cancelled(toolfold, SIX, updates, at=2)
    async with anyio.create_task_group() as tasks:

        async def resume() -> None:
            await toolfold.app.runtime.resume(run_id)

        tasks.start_soon(resume)
        with anyio.fail_after(60):
            while done(updates).total() < 4:
                await anyio.sleep(0.005)
        await anyio.sleep(0.03)
        tasks.cancel_scope.cancel()

    result = await toolfold.app.runtime.resume(run_id)
    assert result.success, result.text
    assert done(updates) == Counter(range(6))


async def test_calls_whose_order_time_decides_can_be_gone_on_with(
    toolfold: Running, updates: Path
) -> None:
    code = """
import asyncio, records
async def one(n):
    await asyncio.sleep(0.05 * (5 - n))
    await records.put(id=n, value="a")
    await asyncio.sleep(0.3)
    await records.put(id=n + 10, value="b")
await asyncio.gather(*[one(n) for n in range(5)])
"""
    run_id = await cancelled(toolfold, code, updates, at=7)
    result = await toolfold.app.runtime.resume(run_id)

    assert result.success, result.text
    assert set(done(updates)) == {*range(5), *range(10, 15)}
    assert done(updates).total() <= 12  # `put` may be repeated where it was under way


async def test_after_a_reset_a_run_does_not_begin_with_other_variables(
    toolfold: Running, updates: Path
) -> None:
    await texts(toolfold, "import records, time\ntag = 'first'")
    code = "records.put(id=1, value=tag)\ntime.sleep(1.2)\nrecords.put(id=2, value=tag)"
    run_id = await cancelled(toolfold, code, updates, at=1, session=MINE)
    toolfold.app.sessions.reset("mine")
    await texts(toolfold, "import records, time\ntag = 'second'")

    await toolfold.app.runtime.resume(run_id)
    values = [json.loads(line)["value"] for line in updates.read_text().splitlines()]
    assert set(values) == {"first"}


async def test_moving_to_cpython_calls_nothing(confined: Running, updates: Path) -> None:
    found = await texts(
        confined,
        "import records\ndef f(v=records.update(id=77, value='')):\n    return 1",
        "import enum\nf()",
    )

    assert "f cannot be carried over" in found[1]
    assert done(updates) == {77: 1}


@pytest.mark.parametrize(
    ("codes", "name"),
    [
        (["def h():\n    return 'old'", "{}['x']\ndef h():\n    return 'new'"], "h"),
        (["flag = 1\nif flag:\n    def h(): return 1\nelse:\n    def h(): return 2"], "h"),
        (["n = 1\ndef h(v=n):\n    return v"], "h"),
        (["def h(x, seen=[]):\n    seen.append(x)\n    return seen", "h(1)"], "h"),
        (["class C:\n    def __repr__(self):\n        return '5'\nh = C()"], "h"),
        (["from collections import Counter\nh = Counter('aab')"], "h"),
        (["h = [1]\nh.append(h)"], "h"),
    ],
)
async def test_what_would_change_on_the_way_to_cpython_does_not_go(
    confined: Running, codes: list[str], name: str
) -> None:
    found = await texts(confined, *codes, f"import enum\n{name}")

    assert f"{name} cannot be carried over" in found[-1]


async def test_what_two_names_share_is_one_value_in_cpython_too(confined: Running) -> None:
    found = await texts(confined, "a = [1]\nb = a", "import enum\na.append(2)\nb")

    assert found[1] == "[1, 2]"


async def test_a_lost_session_is_told_with_the_rejection(toolfold: Running, home: Path) -> None:
    await texts(toolfold, "v = 5")
    (path,) = home.rglob("mine.session")
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    found = await texts(toolfold, "v + 1", "v + 1")

    for text in found:
        assert "'v' is not defined" in text
        assert "The variables of session 'mine' are lost" in text


async def test_a_global_that_a_function_sets_is_known(toolfold: Running) -> None:
    found = await texts(
        toolfold, "def f():\n    global counter\n    counter = 5\nf()", "counter + 1"
    )

    assert found[1] == "6"


async def test_a_variable_called_cached_is_the_users(toolfold: Running) -> None:
    found = await texts(toolfold, "cached = {}\ncached['a'] = 1", "cached['b'] = 2\ncached")

    assert found[1] == '{"a": 1, "b": 2}'


async def test_cached_returns_the_same_at_first_and_later(toolfold: Running) -> None:
    code = "def f():\n    return {'a': (1, 2)}\n[cached(1, 60, f), cached(1, 60, f), "
    code += "cached('1', 60, lambda: 'other')]"

    assert json.loads((await toolfold.run(code)).text) == [{"a": [1, 2]}, {"a": [1, 2]}, "other"]


async def test_a_function_of_an_earlier_run_is_saved_with_its_constants(
    toolfold: Running,
) -> None:
    define = 'LIMIT = 3\ndef capped(n: int) -> int:\n    """Cap."""\n    return min(n, LIMIT)'
    save = 'import skills\nskills.save("capped", "capped", "Cap a number")'
    found = await texts(toolfold, define, save)

    assert "from skills import capped" in found[1]
    assert (await toolfold.run("from skills import capped\ncapped(9)")).text == "3"


async def test_who_waits_for_a_session_is_answered_in_time(running: MakeApp) -> None:
    async with running({}, limits__answer_s=0.5) as toolfold:
        async with Client(make_server(toolfold.app, client="me")) as client:
            async with anyio.create_task_group() as tasks:
                busy = {"code": "import time\ntime.sleep(8)", "session": "one"}
                tasks.start_soon(client.call_tool, "execute_code", busy)
                await anyio.sleep(1)
                with anyio.fail_after(6):
                    answer = await client.call_tool("execute_code", {"code": "1", "session": "one"})
                text = answer.content[0].text  # type: ignore[union-attr]
                run_id = text.partition("Its id is ")[2].partition(":")[0]
                told = await client.call_tool(
                    "execute_code", {"code": f"import runs\nruns.get('{run_id}', wait_s=0)"}
                )

    assert "waiting for its session" in told.content[0].text  # type: ignore[union-attr]


async def test_beginnings_of_ids_tell_nothing_of_others(toolfold: Running) -> None:
    await toolfold.run("1", origin=Origin(client="key:them", project="/p"))
    origin = Origin(client="key:us", project="/p")
    result = await toolfold.run("import runs\nruns.get('6')", origin=origin)

    assert "There is no run '6' of yours" in result.text


class Process:
    """Stands in for a process that waits."""

    is_alive = True
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_a_process_is_good_for_one_generation_only() -> None:
    parked_processes, old, path = ParkedProcesses(4, idle_s=10), Process(), Path("a.session")
    parked_processes.park(path, "one", old)

    assert parked_processes.take(path, "two") is None
    assert old.is_closed


async def test_resuming_an_older_run_keeps_a_cpython_session(
    confined: Running, updates: Path
) -> None:
    await texts(confined, "import records, time, enum\nkept = 1")
    code = "records.put(id=1, value='')\ntime.sleep(5)"
    run_id = await cancelled(confined, code, updates, at=1, session=MINE)
    await texts(confined, "import enum\nkept2 = 2")
    resumed = await confined.app.runtime.resume(run_id)

    assert resumed.success, resumed.text
    assert await texts(confined, "kept + kept2") == ["3"]


async def test_copies_make_room_before_named_sessions(running: MakeApp) -> None:
    async with running({}, sessions=4) as toolfold:
        await toolfold.run("x = 1", session=SessionRequest("precious"))
        beside = SessionRequest("busy", may_go_beside=True)
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    code = "import time\ntime.sleep(0.2)\ny = 1"
                    tasks.start_soon(lambda: toolfold.run(code, session=beside))  # noqa: B023
        names = {info.name for info in toolfold.app.sessions.list()}

    assert {"precious", "busy"} <= names


async def test_large_reads_are_not_kept_whole(running: MakeApp, updates: Path, home: Path) -> None:
    many = {"records": test_server("records", updates, "40000")}
    async with running(many) as toolfold:
        code = "import records\nfor _ in range(8):\n    rows = records.list_records()\nlen(rows)"
        assert (await toolfold.run(code)).text == "40000"

    assert (home / "data" / "runs.db").stat().st_size < 5_000_000
