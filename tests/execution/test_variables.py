"""Variables that last: between runs, restarts and parallel runs."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import MakeApp, Running

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.execution.runtime import SessionRequest

pytestmark = pytest.mark.anyio

MINE = SessionRequest("mine")
BESIDE = SessionRequest("mine", may_go_beside=True)


@pytest.fixture
async def toolfold(running: MakeApp) -> AsyncIterator[Running]:
    async with running({}) as opened:
        yield opened


async def texts(toolfold: Running, *codes: str, session: SessionRequest = MINE) -> list[str]:
    return [(await toolfold.run(code, session=session)).text for code in codes]


async def test_variables_functions_classes_and_imports_live_between_runs(
    toolfold: Running,
) -> None:
    first = """
import json
from collections import Counter
rows = [{"n": 1}, {"n": 2}]
counted = Counter("aab")
class Point:
    def __init__(self, x):
        self.x = x
point = Point(5)
async def twice(n):
    return n * 2
def total():
    return sum(row["n"] for row in rows)
"""
    found = await texts(
        toolfold,
        first,
        "rows.append({'n': 3})",
        "json.dumps([total(), point.x, counted['a'], await twice(4)])",
    )

    assert found[-1] == "[6, 5, 2, 8]"


async def test_what_a_run_without_a_session_binds_is_gone(toolfold: Running) -> None:
    await toolfold.run("x = 1")

    assert "'x' is not defined" in (await toolfold.run("x")).text
    assert toolfold.app.sessions.list() == []


async def test_tools_imported_by_an_earlier_run_are_known_and_checked(toolfold: Running) -> None:
    found = await texts(
        toolfold, "import memory as m", "m.store('the sea is cold')", "m.store(contents=1)"
    )

    assert len(found[1]) == 8
    assert "Nothing was run" in found[2]
    assert "contents" in found[2]


async def test_an_awaited_call_of_an_earlier_run_is_awaited_in_a_later_one(
    toolfold: Running,
) -> None:
    define = """
import memory, asyncio
async def both(a, b):
    return await asyncio.gather(memory.store(a), memory.store(b))
"""
    assert (await texts(toolfold, define, "len(await both('one', 'two'))"))[1] == "2"


async def test_a_run_that_fails_keeps_what_it_bound_before(toolfold: Running) -> None:
    found = await texts(toolfold, "a = 1\nb = 2\n{}['c']\nd = 4", "a + b", "d")

    assert "KeyError" in found[0]
    assert found[1] == "3"
    assert "NameError" in found[2]


@pytest.mark.parametrize("code", ["while True: pass", "x = [0] * 10**9", "'a' * 10**10"])
async def test_after_a_limit_the_session_is_as_it_was_before(running: MakeApp, code: str) -> None:
    async with running({}, limits__guest_time_s=0.5, sandbox="monty") as toolfold:
        found = await texts(toolfold, "kept = 7", f"kept = 8\n{code}", "kept")

    assert "as they were before this run" in found[1]
    assert found[2] == "7"


async def test_variables_survive_a_restart(running: MakeApp) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "import re\nnumbers = [1, 2, 3]\npattern = re.compile('a+')")
    async with running({}) as toolfold:
        assert (await texts(toolfold, "pattern.findall('caat'), sum(numbers)")) == ['[["aa"], 6]']


async def test_random_numbers_go_on_where_they_were(running: MakeApp) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "import random\nrandom.seed(3)\nfirst = random.random()")
        await anyio.to_thread.run_sync(toolfold.app.sessions.fork, "mine", "other")
        one = await texts(toolfold, "random.random()")
        other = await texts(toolfold, "random.random()", session=SessionRequest("other"))

    assert one == other


def state_file(home: Path) -> Path:
    (found,) = home.rglob("mine.session")
    return found


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def relabel(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"runs":1', b'"runs":2', 1))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("tamper", [flip, relabel, cut, empty])
async def test_a_state_that_was_tampered_with_is_refused(
    running: MakeApp, home: Path, tamper: Any
) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "secret = 42")
        tamper(state_file(home))
        found = await texts(toolfold, "secret", "x = 1", "x + 1")

    assert "'secret' is not defined" in found[0]
    assert "are lost, and it starts empty" in found[1]
    assert found[2] == "2"


async def test_what_is_lost_is_said(running: MakeApp, home: Path) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "secret = 42")
        flip(state_file(home))
        found = await texts(toolfold, "1 + 1")

    assert "The variables of session 'mine' are lost" in found[0]
    assert "changed by another process" in found[0]


async def test_a_state_of_another_session_is_refused(running: MakeApp, home: Path) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "secret = 42")
        other = SessionRequest("other")
        await texts(toolfold, "public = 1", session=other)
        path = state_file(home)
        path.with_name("other.session").write_bytes(path.read_bytes())

        assert "not defined" in (await texts(toolfold, "secret", session=other))[0]


async def test_a_state_of_another_interpreter_says_so(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "first = 1\nsecond = 2")
    monkeypatch.setattr("toolfold.app.INTERPRETER", "monty 99.0")
    async with running({}) as toolfold:
        (found,) = await texts(toolfold, "1")

    assert "first, second were written by monty 1" in found
    assert "this is monty 99.0" in found


async def test_two_runs_in_one_session_queue(toolfold: Running) -> None:
    await texts(toolfold, "import time\nseen = []")
    code = "seen.append({0})\ntime.sleep(0.1)\nseen.append({0})"
    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(texts, toolfold, code.format(number))

    (found,) = await texts(toolfold, "seen")
    seen = json.loads(found)
    assert seen[::2] == seen[1::2]
    assert sorted(seen[::2]) == [0, 1, 2, 3]


async def in_tier(toolfold: Running, tier: str) -> None:
    """Have the session in an interpreter, where there is one."""
    if tier == "cpython":
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        await texts(toolfold, "import enum\nclass Kind(enum.Enum):\n    ONE = 1")


@pytest.mark.parametrize("tier", ["monty", "cpython"])
async def test_parallel_runs_of_a_client_do_not_wait_and_lose_nothing(
    toolfold: Running, tier: str
) -> None:
    await in_tier(toolfold, tier)
    await texts(toolfold, "import time\nseen = [0]\ntotal = 0")
    replies: list[Any] = []
    code = (
        "time.sleep({1})\nvalue_{0} = {{'n': {0}}}\ndef twice_{0}():\n    return 2 * {0}\nlen(seen)"
    )

    async def run(number: int) -> None:
        seconds = 1.5 if number < 3 else 0
        replies.append(await toolfold.run(code.format(number, seconds), session=BESIDE))

    with anyio.fail_after(100):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(run, number)
    assert toolfold.app.sessions.show("mine").tier == tier

    assert [reply.text for reply in replies] == ["1"] * 20
    assert {reply.session for reply in replies} == {"mine"}
    assert [info.name for info in toolfold.app.sessions.list()] == ["mine"]
    values = "[" + ", ".join(f"value_{n}['n'] + twice_{n}()" for n in range(20)) + "]"
    assert await texts(toolfold, values) == [json.dumps([3 * n for n in range(20)])]


@pytest.mark.parametrize("tier", ["monty", "cpython"])
async def test_what_two_runs_changed_is_the_later_ones_and_said(
    toolfold: Running, tier: str
) -> None:
    await in_tier(toolfold, tier)
    await texts(toolfold, "import time\nseen = [0]")
    replies: dict[str, Any] = {}

    async def run(name: str, code: str) -> None:
        replies[name] = await toolfold.run(code, session=BESIDE)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "slow", "time.sleep(3)\nseen.append('slow')\nslow, odd = 1, len")
        await anyio.sleep(0.1)
        tasks.start_soon(run, "quick", "seen.append('quick')\nquick = 1")

    assert "No output." in replies["quick"].text
    is_left = "changed at the same time: odd. Make" in replies["slow"].text
    assert is_left is (tier == "monty")  # in CPython its process goes on with the session
    assert "changed seen during this run" in replies["slow"].text
    assert await texts(toolfold, "[seen, slow, quick]") == ['[[0, "slow"], 1, 1]']


async def test_a_name_that_is_none_is_refused(toolfold: Running) -> None:
    for name in ("../x", "a/b", "", "x" * 65, "a\nb", ".hidden", "é"):
        with pytest.raises(BadInput, match="A session's name has 1 to 64"):
            await toolfold.run("1", session=SessionRequest(name))


async def test_sessions_are_listed_shown_copied_and_reset(toolfold: Running) -> None:
    sessions = toolfold.app.sessions
    await texts(toolfold, "import json\nx = 1\ndef double(n):\n    return 2 * n")
    await texts(toolfold, "y = 2", session=SessionRequest("second"))

    assert [info.name for info in sessions.list()] == ["second", "mine"]
    shown = sessions.show("mine")
    assert shown.bindings.names == ("json", "x", "double")
    assert shown.runs == 1
    assert shown.size_bytes > 100
    sessions.fork("mine", "third")
    with pytest.raises(BadInput, match="already"):
        sessions.fork("mine", "third")
    sessions.reset("mine")
    with pytest.raises(NotFound):
        sessions.show("mine")
    with pytest.raises(NotFound):
        sessions.reset("mine")
    assert await texts(toolfold, "double(x)", session=SessionRequest("third")) == ["2"]
    assert "not defined" in (await texts(toolfold, "x"))[0]


async def test_a_session_that_a_run_has_cannot_be_reset(toolfold: Running) -> None:
    await texts(toolfold, "import time")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(texts, toolfold, "time.sleep(3)")
        await anyio.sleep(1)
        with pytest.raises(StoreError, match="A run is in progress"):
            toolfold.app.sessions.reset("mine")


async def test_only_so_many_sessions_are_kept(running: MakeApp) -> None:
    async with running({}, sessions=3) as toolfold:
        for number in range(6):
            await texts(toolfold, f"n = {number}", session=SessionRequest(f"s{number}"))
        names = [info.name for info in toolfold.app.sessions.list()]

    assert names == ["s5", "s4", "s3"]


async def test_a_state_that_is_too_large_is_not_kept(running: MakeApp) -> None:
    async with running({}, limits__session_bytes=100_000) as toolfold:
        found = await texts(toolfold, "kept = 1", "big = list(range(100_000))", "kept", "big")

    assert "at most 100,000 can be kept" in found[1]
    assert found[2] == "1"
    assert "not defined" in found[3]


async def test_files_are_for_their_owner_alone(running: MakeApp, home: Path) -> None:
    async with running({}) as toolfold:
        await texts(toolfold, "x = 1")
    path = state_file(home)

    assert path.stat().st_mode & 0o777 == 0o600
    assert (path.parents[1] / "key").stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_namespaces_do_not_see_each_other(running: MakeApp) -> None:
    async with running({}, memory__namespace="one") as toolfold:
        await texts(toolfold, "x = 1")
    async with running({}, memory__namespace="two") as toolfold:
        assert "not defined" in (await texts(toolfold, "x"))[0]


async def test_a_directory_that_cannot_be_written_is_said(running: MakeApp, home: Path) -> None:
    (home / "data").mkdir(parents=True, exist_ok=True)
    (home / "data" / "sessions").write_text("in the way")
    async with running({}) as toolfold:
        with pytest.raises(StoreError, match="Sessions cannot be kept"):
            await toolfold.run("1", session=MINE)


# --- CPython


@pytest.fixture
async def confined(running: MakeApp) -> AsyncIterator[Running]:
    async with running({}) as toolfold:
        works, why = await toolfold.app.tiers.examine()
        if not works:
            pytest.skip(f"There is no CPython tier here: {why}")
        yield toolfold


async def test_a_cpython_session_keeps_its_process(confined: Running) -> None:
    found = await texts(
        confined,
        "import enum\nclass Color(enum.Enum):\n    RED = 1\ngenerator = (n for n in range(9))",
        "Color.RED.name, next(generator)",
        "next(generator)",
    )

    assert found[1:] == ['["RED", 0]', "1"]
    assert confined.app.sessions.show("mine").tier == "cpython"


async def test_variables_of_monty_are_taken_to_cpython(confined: Running) -> None:
    found = await texts(
        confined,
        "import json\nrows = [{'a': (1, None), 2: {3.5}}]\ndef f(n):\n    return n + len(rows)",
        "import statistics as s\ns.mean([f(1), 4]), rows[0][2] == {3.5}, json.dumps(rows[0]['a'])",
    )

    assert found[1] == '[3, true, "[1, null]"]'
    assert confined.app.sessions.show("mine").tier == "cpython"


async def test_what_cannot_be_taken_is_named_and_nothing_runs(confined: Running) -> None:
    found = await texts(
        confined,
        "import re\nmatch = re.search('a', 'cat')\nplain = 1",
        "import statistics\nprint('begun')\nmatch",
        "import statistics\nplain",
    )

    assert found[1].startswith("Nothing was run.")
    assert "match cannot be carried over" in found[1]
    assert "begun" not in found[1]
    assert found[2].startswith("1\nNote: Not carried over to CPython")
    assert "match (Match)" in found[2]


async def test_code_that_is_wrong_in_both_leaves_the_session_where_it_was(
    confined: Running,
) -> None:
    await texts(confined, "x = 1", "y = x\n{}['missing']")

    assert confined.app.sessions.show("mine").tier == "monty"
    assert await texts(confined, "x + y") == ["2"]


async def test_a_cpython_session_ends_with_the_daemon_and_says_so(running: MakeApp) -> None:
    async with running({}) as toolfold:
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        await texts(
            toolfold,
            "import enum\nvalue = {1: (2,)}\nspent = (n for n in range(3))\n"
            "class Point:\n    x = 1\ndef double(n):\n    return 2 * n\nplace = Point()",
        )
    async with running({}) as toolfold:
        found = await texts(toolfold, "value[1][0] + double(2) + place.x", "spent", "enum.__name__")

    assert found[0].startswith("7")
    assert "spent lived in a CPython process, which ended" in found[0]
    assert "value" not in found[0]
    assert "spent" in found[1]
    assert found[2].startswith("enum")


async def test_parked_processes_stand_still_and_are_few(running: MakeApp) -> None:
    async with running({}, parked_sessions=2) as toolfold:
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        busy = "import threading\ndef spin():\n    while True: pass\n"
        busy += "thread = threading.Thread(target=spin, daemon=True)\nthread.start()"
        for name in ("one", "two", "three"):
            await texts(toolfold, busy, session=SessionRequest(name))
        before = os.times()
        await anyio.sleep(0.5)
        spent = os.times().children_user - before.children_user
        (lost,) = await texts(toolfold, "1", session=SessionRequest("one"))
        (kept,) = await texts(toolfold, "spin.__name__", session=SessionRequest("three"))

    assert spent < 0.1
    assert "made room for others" in lost
    assert kept == "spin"


async def test_modules_that_came_later_can_be_imported_in_a_parked_session(
    confined: Running,
) -> None:
    found = await texts(confined, "import enum", "import memory\nlen(memory.store('a'))")

    assert found[1] == "8"
