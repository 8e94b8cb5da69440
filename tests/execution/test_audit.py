"""The audit log: every row has its entry, and nothing that may happen is an alarm."""

import fcntl
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from audited import (
    DAY_S,
    DECIDED,
    REVEALED,
    Clock,
    check,
    fault,
    make_journal,
    one_run,
    opened,
    tampering,
)

from toolfold.errors import NotFound, StoreError
from toolfold.journal import runsdb
from toolfold.journal.audit.chain import (
    Head,
    head_path,
    key_path,
    last_entry,
    read_head,
    read_signer,
)
from toolfold.journal.audit.verify import Verified
from toolfold.journal.decisions import happened
from toolfold.journal.runs import Origin
from toolfold.storage import sqlite_file
from toolfold.storage.migrations import DatabaseSchema

ONE = 1 << 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "runs.db"


def test_every_beginning_call_decision_reveal_and_end_has_its_entry(path: Path) -> None:
    with opened(path) as journal:
        one_run(journal)
        verified = check(path)
        with closing(sqlite3.connect(path)) as connection:
            kinds = [kind for (kind,) in connection.execute("SELECT kind FROM audit ORDER BY seq")]

    assert kinds == ["begin", "decision", "reveal", "call", "call", "end"]
    assert verified == Verified(entries=6, runs=1, pruned=0, trimmed=0, older=0, fault=None)


def test_a_run_under_way_is_no_alarm_and_the_head_follows_each_end(path: Path) -> None:
    with opened(path) as journal:
        signer = read_signer(path)
        assert signer is not None
        begun = journal.begin(Origin(), "1")
        assert check(path).fault is None
        assert read_head(path, signer) == Head(0, bytes(32))
        begun.end(failure=None, reply="")
        head = read_head(path, signer)
        assert check(path).fault is None

    assert head is not None
    assert head.seq == 2


async def test_a_head_that_another_process_holds_is_moved_a_moment_later(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = make_journal(path)
    async with journal.running():
        with head_path(path).open("r+b") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            one_run(journal)
        signer = read_signer(path)
        assert signer is not None
        with anyio.fail_after(60):
            while read_head(path, signer) == Head(0, bytes(32)):
                await anyio.sleep(0.01)

    assert not caplog.messages


def test_rows_that_waited_have_entries_too(path: Path) -> None:
    with opened(path) as journal:
        with closing(sqlite3.connect(path)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            one_run(journal)
            holder.execute("ROLLBACK")
        one_run(journal)

        assert check(path) == Verified(
            entries=12, runs=2, pruned=0, trimmed=0, older=0, fault=None
        )  # fmt: skip


def test_a_file_that_is_set_aside_takes_its_head_along(path: Path) -> None:
    with opened(path) as journal:
        one_run(journal)
    path.write_bytes(b"This is no database. " * 1000)

    with opened(path) as journal:
        one_run(journal)

    assert check(path).fault is None
    assert path.with_name("runs.db.broken-1-head").exists()


def test_a_journal_that_was_deleted_is_missed(path: Path) -> None:
    with opened(path) as journal:
        one_run(journal)
    path.unlink()
    with opened(path) as journal:
        one_run(journal, calls=0)

    assert "entries 5 to 6, the last ones, are missing" in fault(path)


def test_what_is_not_allowed_is_there_for_others_at_once_and_the_rest_with_its_call(
    path: Path,
) -> None:
    def decisions() -> list[str]:
        with closing(sqlite3.connect(path)) as other:
            return [action for (action,) in other.execute("SELECT action FROM decisions")]

    with opened(path) as journal, journal.begin(Origin(), "code") as run:
        with run.call("crm.delete", {"number": 1}) as call:
            run.decide(replace(DECIDED, position=call.position, action="allow", by="policy"))
            call.send()
        assert decisions() == ["allow"]
        run.decide(replace(DECIDED, position=2, action="deny", by="policy"))
        assert decisions() == ["allow", "deny"]
        run.decide(replace(DECIDED, position=3, action="allow", by="policy"))
        run.end(failure=None, reply="")

    assert decisions() == ["allow", "deny", "allow"]
    assert check(path).fault is None


def test_a_call_is_there_for_others_before_it_is_made_unless_it_only_reads(path: Path) -> None:
    with opened(path) as journal, journal.begin(Origin(), "code") as run:
        for is_reading in (True, False):
            with run.call("crm.call", {"number": 1}) as call:
                call.is_reading = is_reading
                call.reveal("crm", {"EMAIL": 1, "PHONE": 2})
                call.send()
                with closing(sqlite3.connect(path)) as other:
                    (intents,) = other.execute("SELECT count(*) FROM intents").fetchone()
                    (reveals,) = other.execute("SELECT count(*) FROM reveals").fetchone()
                assert (intents, reveals) == ((0, 2) if is_reading else (1, 4))
        run.end(failure=None, reply="")


def python(code: str, *arguments: object) -> "subprocess.Popen[str]":
    prelude = (
        "import sys\nfrom pathlib import Path\nfrom toolfold.journal.journal import Journal\n"
        "from toolfold.journal.decisions import DecisionEvent, RevealEvent\n"
        "from toolfold.journal.runs import Origin\n"
        "path, most = Path(sys.argv[1]), int(sys.argv[2])\n"
        "journal = Journal(path, days=30, max_bytes=most, code_bytes=1000)\n"
        "def one_run():\n"
        "    with journal.begin(Origin(), 'code') as run:\n"
        "        run.reveal(RevealEvent(position=1, upstream='crm', kind='EMAIL', count=2))\n"
        "        for number in range(5):\n"
        "            with run.call('a.b', {'number': number}) as call:\n"
        "                call.answer = 'x' * 500\n"
        "        run.end(failure=None, reply='')\n"
    )
    command = [sys.executable, "-c", prelude + code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_write_one_file_make_one_chain(path: Path) -> None:
    code = "with journal.opened():\n    for _ in range(40):\n        one_run()\n"
    children = [python(code, path, 1 << 29) for _ in range(4)]
    for child in children:
        child.communicate(timeout=50)
        assert child.returncode == 0

    verified = check(path)
    assert (verified.fault, verified.entries, verified.runs) == (None, 4 * 40 * 8, 160)
    with closing(sqlite3.connect(path)) as connection:
        signer = read_signer(path)
        assert signer is not None
        assert read_head(path, signer) == last_entry(connection)


@contextmanager
def writing(code: str, path: Path, max_bytes: int) -> "Iterator[subprocess.Popen[str]]":
    """Have a process that writes, which is gone after this context whatever happens."""
    with python(code, path, max_bytes) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def kill_writers(path: Path, *, rounds: int, max_bytes: int) -> Verified:
    """Kill two processes that write and prune, again and again, and verify each time."""
    moments = random.Random(rounds)
    code = (
        "import threading, time\n"
        "from toolfold.journal import journal as module\n"
        "module._HOUR_S = 0.0\n"  # all runs may be pruned
        "def prune():\n"
        "    while True:\n"
        "        journal.prune()\n"
        "        time.sleep(0.01)\n"  # or others would hardly come to write
        "threading.Thread(target=prune, daemon=True).start()\n"
        "with journal.opened():\n"
        "    one_run()\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        one_run()\n"
    )
    verified = Verified(entries=0, runs=0, pruned=0, trimmed=0, older=0, fault=None)
    for _ in range(rounds):
        with ExitStack() as stack:
            children = [stack.enter_context(writing(code, path, max_bytes)) for _ in range(2)]
            assert check(path).fault is None
            for child in children:
                time.sleep(moments.random() * 0.05)
                os.kill(child.pid, signal.SIGKILL)
        verified = check(path)
        assert verified.fault is None
    return verified


def test_killed_processes_are_no_alarm(path: Path) -> None:
    assert kill_writers(path, rounds=3, max_bytes=1 << 29).entries > 0


def test_killed_processes_are_no_alarm_while_runs_are_pruned(path: Path) -> None:
    verified = kill_writers(path, rounds=3, max_bytes=200_000)
    assert verified.pruned + verified.trimmed > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("max_bytes", [300_000, 1 << 29])
def test_killed_processes_are_never_an_alarm(path: Path, max_bytes: int) -> None:
    # While a log is verified others write on, so that each round of one takes longer than the last.
    for number in range(4):
        kill_writers(path.with_name(f"runs-{number}.db"), rounds=10, max_bytes=max_bytes)


def test_what_retention_deletes_is_no_alarm_and_counted(path: Path) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal:
        one_run(journal)
        long = journal.begin(Origin(), "goes on")
        clock.now += 40 * DAY_S
        young = one_run(journal)
        long.end(failure=None, reply="late")
        journal.prune()
        verified = check(path)
        one_run(journal)

    assert verified == Verified(entries=7, runs=1, pruned=1, trimmed=7, older=0, fault=None)
    assert check(path).fault is None
    with tampering(path) as connection:
        connection.execute("UPDATE beginnings SET code = 'x' WHERE id = ?", (young.id,))
    assert "beginnings" in fault(path)


def test_when_all_runs_are_deleted_the_log_goes_on(path: Path) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal:
        for _ in range(300):
            one_run(journal, calls=1)
        clock.now += 40 * DAY_S
        journal.prune()
        verified = check(path)
        one_run(journal)

    assert verified == Verified(entries=1, runs=0, pruned=1, trimmed=1499, older=0, fault=None)
    assert check(path).fault is None
    assert check(path).entries == 7


def test_pruning_does_not_hide_what_somebody_else_deleted(path: Path) -> None:
    clock = Clock()
    with opened(path, clock=clock) as journal:
        one_run(journal)
        one_run(journal)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM beginnings WHERE number = 1")

    make_journal(path, clock=clock).prune()

    assert "row of entry 1" in fault(path)


def test_runs_from_before_the_log_are_counted(path: Path) -> None:
    path.parent.mkdir()
    older = DatabaseSchema("the journal", 0x746F6C64, runsdb._STEPS[:3])
    with closing(sqlite_file.open_for_writing(path, older).connection) as connection:
        for number in (1, 2):
            connection.execute(
                "INSERT INTO beginnings (id, began_at, client, request, project, process, code,"
                " code_bytes) VALUES (?, 1.0, '', '', '', 1, '1', 1)",
                (f"{number}",),
            )
        connection.execute(
            "INSERT INTO calls VALUES (?, 'a.b', 'ok', '{}', 2, NULL, '1', 1, NULL, NULL, 1.0, 1)",
            (ONE + 1,),
        )

    assert check(path) == Verified(entries=0, runs=0, pruned=0, trimmed=0, older=2, fault=None)
    with opened(path) as journal:
        one_run(journal)
    assert check(path) == Verified(entries=6, runs=1, pruned=0, trimmed=0, older=2, fault=None)


def test_decisions_and_reveals_come_back_as_they_were_written(path: Path) -> None:
    with opened(path) as journal:
        run = one_run(journal)
        journal.decide(run.id, DECIDED)
        events = runsdb.read_journal(path, lambda each: happened(each, run.id)) or []

        with pytest.raises(NotFound, match="toolfold runs"):
            journal.decide("ffff", DECIDED)
        assert check(path).entries == 7
    assert [each.what for each in events] == [DECIDED, REVEALED, DECIDED]


def test_a_decision_that_cannot_be_written_is_said_so(path: Path) -> None:
    with opened(path) as journal:
        run = one_run(journal)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DROP TABLE audit")
        with pytest.raises(StoreError, match="cannot be written"):
            journal.decide(run.id, DECIDED)


def journal_of_version_4(path: Path) -> None:
    """Put a journal there as version 4 of its tables wrote it, whose triggers called Python."""
    kept = Path(__file__).with_name("journal_4")
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((kept / "runs.sql").read_text())
        connection.execute("PRAGMA application_id = 0x746F6C64")
        connection.execute("PRAGMA user_version = 4")
    head_path(path).write_bytes((kept / "head").read_bytes())
    key_path(path).write_bytes(bytes.fromhex((kept / "key.hex").read_text()))


def test_the_log_of_an_older_version_holds_and_goes_on(path: Path) -> None:
    journal_of_version_4(path)

    assert check(path) == Verified(entries=6, runs=2, pruned=0, trimmed=0, older=0, fault=None)
    with opened(path) as journal:
        one_run(journal)
    assert check(path) == Verified(entries=12, runs=3, pruned=0, trimmed=0, older=0, fault=None)


def test_an_older_process_that_still_runs_cannot_write_rows_without_entries(path: Path) -> None:
    journal_of_version_4(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        older.create_function("audit_call", 13, lambda *_: bytes(64))
        call = (
            "INSERT INTO calls VALUES (?, 'a.b', 'ok', '{}', 2, NULL, '1', 1, NULL, NULL, 1.0, 1)"
        )
        older.execute("BEGIN")
        older.execute(call, (ONE * 2 + 1,))
        older.execute("ROLLBACK")
        assert check(path).fault is None

        with pytest.raises(sqlite3.IntegrityError, match="restart this one"):
            older.execute(call, (ONE * 2 + 1,))
    assert check(path).fault is None


def test_processes_that_write_by_turns_make_one_chain(path: Path) -> None:
    with opened(path) as ours, opened(path) as theirs:
        for journal in (ours, theirs, theirs, ours, theirs):
            one_run(journal)

    assert check(path) == Verified(entries=30, runs=5, pruned=0, trimmed=0, older=0, fault=None)


def test_of_rows_that_are_written_together_one_that_cannot_be_costs_no_other(path: Path) -> None:
    with opened(path) as journal:
        journal._soon = lambda _: None
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON calls WHEN NEW.tool = 'a.full' "
                "BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        with journal.begin(Origin(), "1") as run:
            for tool in ("a.b", "a.full", "a.c"):
                with run.call(tool, {}) as call:
                    call.is_reading, call.answer = True, 1
            run.end(failure=None, reply="")
        found = journal.find(run.id)

    assert [call.tool for call in found.calls] == ["a.b", "a.c"]
    verified = check(path)
    assert verified.fault is None
    assert "1 row of the journal could not be written: no room" in verified.gaps[0]
