import fcntl
import hashlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support import MakeApp, test_server

from toolfold.config.processes import own_identity
from toolfold.errors import NotFound, StoreError, ToolFailed
from toolfold.journal import runs
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin, Run, state_of
from toolfold.journal.runsdb import SCHEMA
from toolfold.storage.sqlite_file import open_for_reading

DAY_S = 24 * 3600.0
NULL = {"null": test_server("null")}


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "runs.db"


def make_journal(path: Path, **options: Any) -> Journal:
    settings = {"days": 30, "max_bytes": 1 << 29, "code_bytes": 1000, "clock": Clock()}
    return Journal(path, **(settings | options))


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Journal]:
    journal = make_journal(path, **options)
    with journal.opened():
        yield journal


def one_run(journal: Journal, code: str = "1", origin: Origin | None = None) -> str:
    with journal.begin(origin or Origin(), code) as run:
        run.end(failure=None, reply="")
    return run.id


def find_run(path: Path, prefix: str) -> Run:
    connection = open_for_reading(path, SCHEMA)
    assert connection is not None
    with closing(connection):
        return runs.find(connection, prefix)


def list_runs(path: Path, limit: int) -> list[Run]:
    connection = open_for_reading(path, SCHEMA)
    assert connection is not None
    with closing(connection):
        return runs.newest(connection, limit)


def find_lost(journal: Journal, client: str, request: str) -> Run | None:
    run = journal.latest(client, request)
    return run if run is not None and run.ending is None else None


def is_intact(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")


def test_a_run_comes_back_as_it_was_written(path: Path) -> None:
    origin = Origin(client="relay-1", request="7", project="/home/café")
    with opened(path) as journal, journal.begin(origin, "import github") as written:
        with written.call("github.get_issue", {"number": 1, "title": "é"}) as call:
            call.answer = [{"state": "open"}]
        with pytest.raises(ToolFailed), written.call("github.close", {}):
            raise ToolFailed("github.close failed: no rights")
        written.end(failure="error", reply="It stopped.")
        run = find_run(path, written.id)
        [listed] = list_runs(path, 10)

    assert run.origin == origin
    assert run.code.head == "import github"
    assert run.process == own_identity()
    assert run.ending is not None
    assert (run.ending.failure, run.ending.reply.head) == ("error", "It stopped.")
    assert run.began_at < run.calls[0].started_at < run.ending.at
    first, second = run.calls
    assert (first.position, first.tool, first.outcome) == (1, "github.get_issue", "ok")
    assert first.answer is not None
    assert json.loads(first.arguments.head) == {"number": 1, "title": "é"}
    assert json.loads(first.answer.head) == [{"state": "open"}]
    assert (second.outcome, second.answer) == ("failed", None)
    assert second.error == "github.close failed: no rights"
    assert (listed.id, listed.call_count, listed.calls) == (run.id, 2, ())


def test_what_is_too_long_is_kept_as_its_head_its_size_and_its_hash(path: Path) -> None:
    long = "é" * 40_000
    with opened(path) as journal, journal.begin(Origin(), "#" * 1001) as written:
        with written.call("a.b", {"text": long}) as call:
            call.answer = "x" * (64 * 1024 - 2)  # with its quotes just as much as is kept whole
        run = find_run(path, written.id)

    whole = json.dumps({"text": long}, ensure_ascii=False, separators=(",", ":")).encode()
    [kept] = run.calls
    assert kept.arguments.size_bytes == len(whole)
    assert not kept.arguments.is_whole
    assert whole.startswith(kept.arguments.head.encode())
    assert len(kept.arguments.head.encode()) in (64 * 1024, 64 * 1024 - 1)
    assert kept.answer is not None
    assert kept.answer.is_whole
    assert (len(run.code.head), run.code.size_bytes) == (1000, 1001)
    with closing(sqlite3.connect(path)) as connection:
        [hashes] = connection.execute("SELECT arguments_sha256, answer_sha256 FROM calls")
    assert hashes == (hashlib.sha256(whole).hexdigest(), None)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("\ud800", '"?"'),
        ("a\x00b", '"a\\u0000b"'),
        (float("inf"), "Infinity"),
        (10**5000, '"This cannot be written as JSON: '),
    ],
    ids=["half a pair", "nul", "infinity", "a very long number"],
)
def test_odd_values_are_written_too(path: Path, value: Any, kept: str) -> None:
    with opened(path) as journal, journal.begin(Origin(request="\ud800"), "\ud800") as run:
        with run.call("a.b", {"value": value}) as call:
            call.answer = value
        read = find_lost(journal, "", "\ud800")

    assert read is not None
    assert read.calls[0].answer is not None
    assert read.calls[0].answer.head.startswith(kept)


def test_ids_sort_by_time_and_their_beginnings_are_enough(path: Path) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal:
        first = one_run(journal)
        clock.now += 1
        second, third = one_run(journal), one_run(journal)

        assert first < second
        assert find_run(path, first[:9]).id == first
        with pytest.raises(NotFound, match=f"Several.*{third}, {second}") as several:
            find_run(path, second[:8])
        with pytest.raises(NotFound, match="toolfold runs"):
            find_run(path, "ffff")
    assert first not in str(several.value)


def test_one_run_is_found_without_going_through_all(path: Path) -> None:
    with opened(path) as journal:
        ids = [one_run(journal) for _ in range(500)]
    connection = open_for_reading(path, SCHEMA)
    assert connection is not None
    steps: list[int] = []
    with closing(connection):
        connection.set_progress_handler(lambda: steps.append(10), 10)
        assert runs.find(connection, ids[7]).id == ids[7]
        assert [each.id for each in runs.newest(connection, 1)] == [ids[-1]]

    assert sum(steps) < 1_000


def test_a_lost_run_is_the_newest_of_its_origin_that_has_no_end(path: Path) -> None:
    asked = Origin(client="relay-1", request="7")
    with opened(path) as journal:
        journal.begin(asked, "first")
        lost = journal.begin(asked, "second")
        with lost.call("a.b", {}) as call:
            call.answer = 1
        journal.begin(Origin(client="relay-2", request="7"), "another's")
    with opened(path) as later:
        found = find_lost(later, "relay-1", "7")
        assert find_lost(later, "relay-1", "8") is None
        one_run(later, "again", asked)
        assert find_lost(later, "relay-1", "7") is None

    assert found is not None
    assert (found.id, found.ending) == (lost.id, None)
    assert [call.tool for call in found.calls] == ["a.b"]


def test_nobody_else_can_read_it(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    path.touch(0o644)
    with opened(path) as journal:
        one_run(journal)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {"runs.db", "runs.db-wal"} <= set(modes)
    assert all(mode == 0o600 for name, mode in modes.items() if name != "runs.db.lock")


def garbage(path: Path) -> None:
    path.write_bytes(b"This is no database. " * 1000)


def another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def half_a_header(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 2000)


@pytest.mark.parametrize("make", [garbage, another_program, half_a_header])
def test_a_file_that_is_no_journal_is_set_aside(
    path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
        content = path.read_bytes()
        with opened(path) as journal:
            one_run(journal)
            assert len(list_runs(path, 10)) == 1

        assert path.with_name(f"runs.db.broken-{number}").read_bytes() == content
        assert f"moved to runs.db.broken-{number}" in caplog.text


def test_damage_that_shows_only_in_writing_costs_no_new_run(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as journal:
        one_run(journal)
    size = path.stat().st_size
    with path.open("r+b") as file:  # all but the first page, which says that it is ours
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    with opened(path) as journal:
        run_id = one_run(journal)
        found = find_run(path, run_id)

    assert found.ending is not None
    assert "moved to runs.db.broken-1" in caplog.text
    assert is_intact(path)


def test_a_file_whose_schema_is_no_text_is_set_aside(path: Path) -> None:
    with opened(path) as journal:
        one_run(journal)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE ends", b"CREATE TABLE \xccnds"))

    with opened(path) as journal:
        one_run(journal)

        assert len(list_runs(path, 10)) == 1
    assert path.with_name("runs.db.broken-1").exists()


def test_damage_that_pruning_finds_is_set_aside_too(path: Path) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal:
        one_run(journal)
    with closing(sqlite3.connect(path)) as connection:
        [[root]] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ends'")
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)

    with opened(path, clock=clock) as journal:
        with pytest.raises(StoreError, match="malformed"):
            journal.prune()
        one_run(journal)

        assert len(list_runs(path, 10)) == 1
    assert path.with_name("runs.db.broken-1").exists()


def test_the_file_of_a_newer_toolfold_is_left_alone(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as journal:
        one_run(journal)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    content = path.read_bytes()

    with opened(path) as journal:
        one_run(journal)

    assert "written by a newer toolfold" in caplog.text
    assert path.read_bytes() == content
    assert not path.with_name("runs.db.broken-1").exists()


def test_a_file_that_is_deleted_meanwhile_is_made_again(path: Path) -> None:
    with opened(path) as journal:
        one_run(journal)
        path.unlink()
        run_id = one_run(journal)

    assert [run.id for run in list_runs(path, 10)] == [run_id]


def test_rows_of_a_run_never_go_into_a_file_that_does_not_know_it(path: Path) -> None:
    with opened(path) as journal:
        early = journal.begin(Origin(), "early")
        path.unlink()
        late = journal.begin(Origin(), "late")
        with early.call("a.b", {}) as call:
            call.answer = 1
        early.end(failure=None, reply="early")

        assert find_run(path, late.id).ending is None
        assert find_run(path, late.id).calls == ()


def test_a_database_that_somebody_holds_costs_one_short_wait_and_no_row(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as journal, closing(sqlite3.connect(path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        started = time.perf_counter()
        ids = [one_run(journal) for _ in range(90)]  # 180 rows, of which one waits for 0.1 s
        waited_s = time.perf_counter() - started
        during = list_runs(path, 100)
        holder.execute("ROLLBACK")
        ids.append(one_run(journal))
        after = list_runs(path, 100)

    assert waited_s < 9
    assert during == []
    assert [run.id for run in after] == ids[::-1]
    assert all(run.ending for run in after)
    [complaint] = caplog.messages
    assert "database is locked" in complaint


async def test_rows_that_wait_are_written_though_no_other_run_comes(path: Path) -> None:
    journal = make_journal(path)
    async with journal.running():
        with anyio.fail_after(60):
            while not path.exists():
                await anyio.sleep(0.01)
            with closing(sqlite3.connect(path)) as holder:
                holder.execute("BEGIN IMMEDIATE")
                run_id = one_run(journal)
                holder.execute("ROLLBACK")
            while not list_runs(path, 1):
                await anyio.sleep(0.01)

    assert find_run(path, run_id).ending is not None


def test_rows_that_wait_are_bounded_and_those_beyond_are_counted(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolfold.journal.rows._MAX_WAITING_BYTES", 5_000)
    with opened(path) as journal, closing(sqlite3.connect(path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        for _ in range(30):
            one_run(journal)
        holder.execute("ROLLBACK")
        one_run(journal)
        written = list_runs(path, 100)

    assert 5 < len(written) < 30
    assert "more rows" in caplog.messages[-1]


def test_a_process_that_opens_the_file_for_ever_is_not_waited_for(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as journal:
        one_run(journal)
        path.unlink()
        with path.with_name("runs.db.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            started = time.perf_counter()
            one_run(journal)
            waited_s = time.perf_counter() - started

    assert waited_s < 2
    assert "another process has held its lock" in caplog.text


def python(code: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """Start a process that has a `journal`."""
    prelude = (
        "import sys\nfrom pathlib import Path\nfrom toolfold.journal.journal import Journal\n"
        "from toolfold.journal import runs\nfrom toolfold.journal.runs import Origin\n"
        "from toolfold.journal.runsdb import read_journal\n"
        "journal = Journal(Path(sys.argv[1]), days=30, max_bytes=1 << 29, code_bytes=1000)\n"
    )
    command = [sys.executable, "-c", prelude + code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def start_together(children: list["subprocess.Popen[str]"]) -> None:
    """Let go of all once all are ready, and wait for their ends."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=50)


def test_a_full_disk_costs_rows_and_says_so(path: Path) -> None:
    child = python(
        "import logging, resource\n"
        "logging.basicConfig(format='%(message)s')\n"
        "with journal.opened():\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "    with journal.begin(Origin(), 'code') as run:\n"
        "        for number in range(100):\n"
        "            with run.call('a.b', {'text': 'x' * 5000}) as call:\n"
        "                call.answer = number\n"
        "        run.end(failure=None, reply='')\n"
        "    found = read_journal(Path(sys.argv[1]), lambda each: runs.find(each, run.id))\n"
        "    print(len(found.calls) + (found.ending is not None))\n",
        path,
        stderr=subprocess.PIPE,
    )
    output, log = child.communicate(timeout=30)

    assert child.returncode == 0
    written = output
    assert 0 < int(written) < 100
    first, last = log.splitlines()
    assert "cannot be written (rows lost so far: 1)" in first
    # Of 100 calls and one end, those that are not there are counted.
    assert f"misses {101 - int(written) - 1} more rows" in last
    assert is_intact(path)


WRITE_MANY = """
with journal.opened():
    with journal.begin(Origin(client=sys.argv[2]), 'code') as run:
        print('ready', flush=True)
        sys.stdin.readline()
        for number in range(int(sys.argv[3])):
            with run.call('a.b', {'number': number}) as call:
                call.answer = number
            print(number, flush=True)
        run.end(failure=None, reply='')
"""


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    children = [python(WRITE_MANY, path, n, 1500, stdin=subprocess.PIPE) for n in range(2)]
    start_together(children)

    found = [find_run(path, run.id) for run in list_runs(path, 10)]
    assert {run.origin.client for run in found} == {"0", "1"}
    for run in found:
        assert run.ending is not None
        assert [call.arguments.head for call in run.calls] == [
            f'{{"number":{number}}}' for number in range(1500)
        ]
    assert is_intact(path)


def test_every_row_that_was_acknowledged_survives_the_kill_of_its_process(path: Path) -> None:
    with python(WRITE_MANY, path, "killed", 1_000_000, stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        acknowledged = next(int(line) for line in child.stdout if line == "300\n")
        child.kill()
        for line in child.stdout:
            acknowledged = int(line) if line.endswith("\n") else acknowledged

    with opened(path) as journal:
        lost = find_lost(journal, "killed", "")
    assert lost is not None
    answers = [int(call.answer.head) for call in lost.calls if call.answer]
    # One more may have been written whose word did not reach us.
    assert answers in (list(range(acknowledged + 1)), list(range(acknowledged + 2)))
    assert is_intact(path)


OPEN_AND_WRITE = """
print('ready', flush=True)
sys.stdin.readline()
for path in sorted(Path(sys.argv[1]).iterdir()):
    journal = Journal(path / 'runs.db', days=30, max_bytes=1 << 29, code_bytes=1000)
    with journal.opened(), journal.begin(Origin(client=sys.argv[2]), 'code') as run:
        run.end(failure=None, reply='')
"""


@pytest.mark.parametrize("is_broken", [False, True], ids=["fresh", "damaged"])
def test_processes_that_open_it_at_once_agree_on_one_file(tmp_path: Path, is_broken: bool) -> None:
    places = [tmp_path / f"{number:02}" for number in range(20)]
    for place in places:
        place.mkdir()
        if is_broken:
            garbage(place / "runs.db")
    start_together([python(OPEN_AND_WRITE, tmp_path, n, stdin=subprocess.PIPE) for n in range(6)])

    for place in places:
        found = list_runs(place / "runs.db", 10)
        assert {run.origin.client for run in found if run.ending} == {str(n) for n in range(6)}
        broken = [each.name for each in place.glob("*.broken-?")]
        assert broken == (["runs.db.broken-1"] if is_broken else [])


def test_runs_that_are_too_old_are_pruned_with_all_that_belongs_to_them(path: Path) -> None:
    clock = Clock()
    with opened(path, days=2, clock=clock) as journal:
        for _ in range(3):
            with journal.begin(Origin(), "old") as run:
                for _ in range(120):
                    with run.call("a.b", {}):
                        pass
                run.end(failure=None, reply="")
        clock.now += 1.5 * DAY_S
        young = one_run(journal, "young")
        clock.now += 1 * DAY_S
        journal.prune()
        kept = [run.id for run in list_runs(path, 10)]

    assert kept == [young]
    with closing(sqlite3.connect(path)) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("beginnings", "calls", "ends")
        ]
    assert counts == [1, 0, 1]


def test_a_run_from_the_future_does_not_stop_pruning(path: Path) -> None:
    now = [0.0]
    journal = Journal(path, days=30, max_bytes=1 << 40, code_bytes=1000, clock=lambda: now[0])
    ids = []
    with journal.opened():
        for day in (400, 2, 3, 60):  # the clock was far ahead when the first run began
            now[0] = day * 86_400.0
            with journal.begin(Origin(), "code") as run:
                run.end(failure=None, reply="")
            ids.append(run.id)
        journal.prune()
        for gone in ids[:3]:
            with pytest.raises(NotFound):
                journal.find(gone)
        left = journal.find(ids[3])

    assert left.id == ids[3]


def test_a_run_of_a_live_process_is_under_way_whatever_became_of_the_clock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "with journal.opened(), journal.begin(Origin(), 'code') as run:\n"
        "    print(run.id, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with python(source, path, stdin=subprocess.PIPE) as other, opened(path) as journal:
        assert other.stdout is not None
        run = journal.find(other.stdout.readline().strip())
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 400 * 86_400.0)
        is_under_way, state = journal.is_under_way(run), state_of(run)
        other.kill()
        other.wait()
        is_over = not journal.is_under_way(run)

    assert is_under_way
    assert state == "running"
    assert is_over


def test_when_there_is_too_much_the_oldest_runs_go_and_those_of_the_last_hour_stay(
    path: Path,
) -> None:
    clock = Clock()
    with opened(path, max_bytes=500_000, clock=clock) as journal:
        ids = []
        for _ in range(20):  # two hours of runs of some 60 kB
            with journal.begin(Origin(), "code") as run, run.call("a.b", {}) as call:
                call.answer = "x" * 60_000
            ids.append(run.id)
            clock.now += 360
        journal.prune()
        bounded = [run.id for run in list_runs(path, 100)]
        make_journal(path, max_bytes=1, clock=clock).prune()
        spared = [run.id for run in list_runs(path, 100)]

    assert 5 <= len(bounded) <= 10
    assert bounded == ids[::-1][: len(bounded)]
    assert spared == ids[::-1][: len(spared)]
    assert 9 <= len(spared) <= 10


async def test_rows_wait_a_moment_for_each_other_and_no_longer(path: Path) -> None:
    journal = make_journal(path)
    async with journal.running():
        with journal.begin(Origin(), "code") as run:
            with run.call("a.b", {}):
                pass
            at_once = [each.id for each in list_runs(path, 1)]
            with anyio.fail_after(60):
                while not list_runs(path, 1) or not find_run(path, run.id).call_count:
                    await anyio.sleep(0.001)
            with run.call("a.b", {}):
                pass
            run.end(failure=None, reply="")
            at_the_end = find_run(path, run.id).call_count

    assert at_once == []
    assert at_the_end == 2


async def test_all_before_is_written_before_a_call_that_may_change_something(path: Path) -> None:
    journal = make_journal(path)
    async with journal.running():
        with journal.begin(Origin(), "code") as run:
            with run.call("a.read", {}) as read:
                read.is_reading = True
                assert read.send()
            unwritten = list_runs(path, 1)
            with run.call("a.write", {}) as write:
                is_on_disk = write.send()
                found = find_run(path, run.id)
                with closing(sqlite3.connect(path)) as connection:
                    intents = connection.execute("SELECT tool FROM intents").fetchall()
            run.end(failure=None, reply="")

    assert unwritten == []
    assert is_on_disk
    assert [call.tool for call in found.calls] == ["a.read"]
    assert intents == [("a.write",)]


async def test_it_is_pruned_when_it_opens(path: Path) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal:
        one_run(journal, "old")
    clock.now += 31 * DAY_S

    journal = make_journal(path, clock=clock)
    async with journal.running():
        with anyio.fail_after(60):
            while list_runs(path, 1):
                await anyio.sleep(0.01)


async def test_pruning_does_not_take_rows_from_runs_that_write_meanwhile(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal, journal.begin(Origin(), "old") as run:
        for _ in range(3000):
            with run.call("a.b", {"text": "x" * 500}):
                pass
    clock.now += 31 * DAY_S

    journal = make_journal(path, clock=clock)
    written = 0
    async with journal.running():
        while any(each.code.head == "old" for each in list_runs(path, 5000)) or written < 200:
            one_run(journal, "new")
            written += 1
            await anyio.lowlevel.checkpoint()
        listed = list_runs(path, 100_000)

    assert len(listed) == written
    assert caplog.messages == []


async def test_calls_are_journaled_as_they_were_sent(running: MakeApp, home: Path) -> None:
    code = (
        "import null, tools\ntools.search('echo')\nnull.put(1)\nnull.echo(value=[2])\n"
        "try:\n    null.put(**{'valeu': 3})\nexcept TypeError:\n    pass\n'done'"
    )
    async with running(NULL) as toolfold:
        result = await toolfold.run(code, origin=Origin(client="test", project="/p"))
    run = find_run(home / "data" / "runs.db", result.run_id)

    assert result.value == "done", result.text
    assert run.origin == Origin(client="test", project="/p")
    assert run.code.head == code
    assert [(call.tool, call.outcome, call.arguments.head) for call in run.calls] == [
        ("null.put", "ok", '{"value":1}'),
        ("null.echo", "ok", '{"value":[2]}'),
        ("null.put", "failed", '{"valeu":3}'),
    ]
    assert run.calls[0].answer is not None
    assert json.loads(run.calls[0].answer.head) == {"value": 1, "count": 1}
    assert all(0 < call.duration_s < 60 for call in run.calls)
    assert run.ending is not None
    assert (run.ending.failure, run.ending.reply.head) == (None, result.text)


async def test_a_run_that_is_refused_or_fails_is_a_run(running: MakeApp, home: Path) -> None:
    async with running({}) as toolfold:
        refused = await toolfold.run("nope.nope()")
        failed = await toolfold.run("1 / 0")
    path = home / "data" / "runs.db"
    endings = [find_run(path, result.run_id).ending for result in (refused, failed)]

    assert [ending and ending.failure for ending in endings] == ["rejected", "error"]
    assert [ending and ending.reply.head for ending in endings] == [refused.text, failed.text]


def _count_intents(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [count] = connection.execute("SELECT count(*) FROM intents").fetchone()
    return int(count)


async def test_a_cancelled_run_has_an_end_and_its_call_is_in_doubt(
    running: MakeApp, home: Path
) -> None:
    servers = {**NULL, "slow": test_server("faulty", "slow", "60")}
    code = "import null, slow\nnull.put(value=1)\nslow.put(value=2)"
    under_way = anyio.Event()

    def note(_done: float, _total: float | None, call: str) -> None:
        if call.startswith("slow.put"):
            under_way.set()

    async with running(servers) as toolfold:
        with anyio.fail_after(40):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: toolfold.run(code, on_progress=note))
                await under_way.wait()
                while _count_intents(home / "data" / "runs.db") < 2:
                    await anyio.sleep(0.01)  # until it is about to be sent
                tasks.cancel_scope.cancel()
    path = home / "data" / "runs.db"
    run = find_run(path, list_runs(path, 1)[0].id)

    assert run.ending is not None
    assert run.ending.failure == "cancelled"
    assert [(call.tool, call.outcome) for call in run.calls] == [
        ("null.put", "ok"),
        ("slow.put", "unknown"),
    ]


async def test_runs_that_read_go_on_where_no_journal_can_be_written(
    running: MakeApp, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home.mkdir()
    (home / "data").write_text("This is in the way.")
    async with running(NULL) as toolfold:
        result = await toolfold.run("import null\nnull.echo(value=1)")
        refused = await toolfold.run("import null\nnull.put(value=1)['count']")

    assert result.text == "1"
    assert "null.put was not called: it changes something" in refused.text
    assert "Runs continue without it." in caplog.text
    assert (home / "data").read_text() == "This is in the way."


def test_a_killed_process_leaves_what_its_run_had_done(tmp_path: Path, home: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": NULL}))
    code = "import null\nfor i in range(10_000_000):\n    null.put(value=i)"
    child = subprocess.Popen(
        [sys.executable, "-m", "toolfold", "run", "--config", str(config), "-c", code],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TOOLFOLD_HOME": str(home),
            "TOOLFOLD_NO_DAEMON": "1",
        },
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        with opened(home / "data" / "runs.db") as journal:
            deadline = time.monotonic() + 100
            while (run := find_lost(journal, "cli", "")) is None or run.call_count < 20:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.kill(child.pid, signal.SIGKILL)
            child.wait(timeout=60)
            lost = find_lost(journal, "cli", "")
    finally:
        with suppress(ProcessLookupError):  # its servers may have ended with it already
            os.killpg(child.pid, signal.SIGKILL)
        child.wait(timeout=60)

    assert lost is not None
    assert lost.call_count >= 20
    counts = [json.loads(call.answer.head)["count"] for call in lost.calls if call.answer]
    assert counts == list(range(1, lost.call_count + 1))
