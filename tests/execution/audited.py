"""Journals with an audit log, verified and tampered with."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from toolfold.errors import StoreError
from toolfold.journal.audit.verify import Verified
from toolfold.journal.audit_check import check_log
from toolfold.journal.decisions import DecisionEvent, RevealEvent
from toolfold.journal.journal import Journal
from toolfold.journal.run_writer import JournaledRun
from toolfold.journal.runs import Origin

DAY_S = 24 * 3600.0
DECIDED = DecisionEvent(
    position=1, tool="crm.delete", rule="ask crm.delete*", action="approved", by="user",
    arguments_sha256="ab" * 32,
)  # fmt: skip
REVEALED = RevealEvent(position=1, upstream="crm", kind="EMAIL", count=2)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        self.now += 0.25  # so that times are whole numbers now and then, which SQLite keeps as such
        return self.now


def make_journal(path: Path, **options: Any) -> Journal:
    settings = {"days": 30, "max_bytes": 1 << 29, "code_bytes": 1000, "clock": Clock()}
    return Journal(path, **(settings | options))


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Journal]:
    journal = make_journal(path, **options)
    with journal.opened():
        yield journal


def one_run(journal: Journal, *, calls: int = 2) -> JournaledRun:
    """Six entries with two calls: a beginning, a decision, a reveal, the calls, an end."""
    origin = Origin(client="relay-1", request="7", project="/home/café")
    with journal.begin(origin, "import crm\nprint('é\x00')") as run:
        run.decide(DECIDED)
        run.reveal(REVEALED)
        for number in range(calls):
            with run.call("crm.delete", {"number": number}) as call:
                call.answer = {"text": "x" * 70_000 if number == 1 else "ok"}
        run.end(failure=None, reply="done")
    return run


def check(path: Path) -> Verified:
    return check_log(path)


def fault(path: Path) -> str:
    try:
        found = check(path).fault
    except StoreError as error:
        return str(error)
    return found.what if found else ""


@contextmanager
def tampering(path: Path) -> Iterator[sqlite3.Connection]:
    """Change the file as somebody would who has it and not the key."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
