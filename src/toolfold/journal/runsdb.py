"""The tables of the journal."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from toolfold.journal.audit.chain import AUDITED, RUN_KEYS, SUFFIX, prepare, trigger
from toolfold.journal.runs import CALLS_BITS
from toolfold.storage.migrations import DatabaseSchema
from toolfold.storage.tables import SqlTransaction, read_tables

_Read = TypeVar("_Read")

_APPLICATION_ID: Final = 0x746F6C64

# Each step brings a database of the version that is its index to the next.
_STEPS: Final = (
    (
        """
        CREATE TABLE beginnings (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            began_at REAL NOT NULL,
            client TEXT NOT NULL,
            request TEXT NOT NULL,
            project TEXT NOT NULL,
            process INTEGER NOT NULL,
            code TEXT NOT NULL,
            code_bytes INTEGER NOT NULL,
            code_sha256 TEXT
        )
        """,
        "CREATE INDEX beginnings_by_origin ON beginnings (client, request)",
        # One key of run and position appends to one page; an index would write a second.
        """
        CREATE TABLE calls (
            id INTEGER PRIMARY KEY,
            tool TEXT NOT NULL,
            outcome TEXT NOT NULL,
            arguments TEXT NOT NULL,
            arguments_bytes INTEGER NOT NULL,
            arguments_sha256 TEXT,
            answer TEXT,
            answer_bytes INTEGER,
            answer_sha256 TEXT,
            error TEXT,
            started_at REAL NOT NULL,
            duration_s REAL NOT NULL
        )
        """,
        """
        CREATE TABLE ends (
            number INTEGER PRIMARY KEY,
            ended_at REAL NOT NULL,
            failure TEXT,
            reply TEXT NOT NULL,
            reply_bytes INTEGER NOT NULL,
            reply_sha256 TEXT
        )
        """,
    ),
    (
        "ALTER TABLE beginnings ADD COLUMN kind TEXT NOT NULL DEFAULT 'code'",
        # What the ledger reads: definitions of tools, which of them a run had, and counted texts.
        "CREATE TABLE listings (id TEXT PRIMARY KEY, text TEXT NOT NULL)",
        """
        CREATE TABLE offers (
            number INTEGER PRIMARY KEY,
            listings TEXT NOT NULL,
            shown TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE tokens (
            id INTEGER NOT NULL,
            part TEXT NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY (id, part)
        ) WITHOUT ROWID
        """,
    ),
    (
        # With what a run began: to go on with it after its process died.
        "ALTER TABLE beginnings ADD COLUMN session TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE beginnings ADD COLUMN generation TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE beginnings ADD COLUMN resumes TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX beginnings_by_first ON beginnings (resumes) WHERE resumes <> ''",
        # What a run is about to do, before it is done; answers that `calls` has not as they were;
        # what the clock said. All three go when the run has come to its own end.
        """
        CREATE TABLE intents (
            id INTEGER PRIMARY KEY,
            tool TEXT NOT NULL,
            arguments TEXT NOT NULL,
            arguments_sha256 TEXT
        )
        """,
        "CREATE TABLE wholes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        "CREATE TABLE clocks (id INTEGER PRIMARY KEY, readings TEXT NOT NULL)",
        """
        CREATE TABLE progress (
            number INTEGER PRIMARY KEY,
            done REAL NOT NULL,
            total REAL,
            note TEXT NOT NULL
        )
        """,
    ),
    (
        # What the policy said of calls, and which upstreams were shown personal data.
        """
        CREATE TABLE decisions (
            id INTEGER PRIMARY KEY,
            position INTEGER NOT NULL,
            tool TEXT NOT NULL,
            rule TEXT NOT NULL,
            action TEXT NOT NULL,
            decided_by TEXT NOT NULL,
            arguments_sha256 TEXT NOT NULL,
            at REAL NOT NULL
        )
        """,
        """
        CREATE TABLE reveals (
            id INTEGER PRIMARY KEY,
            position INTEGER NOT NULL,
            upstream TEXT NOT NULL,
            kind TEXT NOT NULL,
            count INTEGER NOT NULL,
            at REAL NOT NULL
        )
        """,
        # Without AUTOINCREMENT, which would write another page: the last entry is never deleted.
        """
        CREATE TABLE audit (
            seq INTEGER PRIMARY KEY,
            at REAL NOT NULL,
            kind TEXT NOT NULL,
            ref INTEGER NOT NULL,
            link BLOB NOT NULL
        )
        """,
        # What stands before the first entry that is left; the first run that has entries; the
        # first whose rows must all be there.
        """
        CREATE TABLE anchor (
            seq INTEGER NOT NULL,
            chain BLOB NOT NULL,
            since INTEGER NOT NULL,
            below INTEGER NOT NULL,
            seal BLOB NOT NULL
        )
        """,
        """
        INSERT INTO anchor SELECT 0, zeroblob(32), first, 0, audit_anchor(0, zeroblob(32), first, 0)
        FROM (SELECT 1 + ifnull(max(seq), 0) AS first FROM sqlite_sequence
            WHERE name = 'beginnings')
        """,
    ),
    (
        # Where there are triggers that make entries, they call functions nobody has any more.
        *(f"DROP TRIGGER IF EXISTS audit_{kind}" for kind in AUDITED),
        *map(trigger, AUDITED),
    ),
)

RESUMING: Final = ("intents", "wholes", "clocks")
"""The tables that are for runs which did not come to their own end."""

SCHEMA: Final = DatabaseSchema("the journal", _APPLICATION_ID, _STEPS, prepare, (SUFFIX,))

_SETTLED: Final = [f"DELETE FROM {table} WHERE id BETWEEN ? AND ?" for table in RESUMING]  # noqa: S608


def read_journal(
    path: Path, read: Callable[[SqlTransaction], _Read], database_url: str = ""
) -> _Read | None:
    """Ask the journal as it is at one moment; None if there is none.

    Raises:
        StoreError: It does not answer.
    """
    return read_tables(path, SCHEMA, database_url, read)


def settle(transaction: SqlTransaction, number: int) -> None:
    """Delete what only somebody needs who goes on with a run."""
    first = number << CALLS_BITS
    for statement in _SETTLED:
        transaction.execute(statement, (first, first + RUN_KEYS - 1))
