"""The file that the journal writes: its tables, opened and pruned."""

import sqlite3
import time
from pathlib import Path
from typing import Final

from toolfold.config import database
from toolfold.config.database import PATIENCE_S, Identity, Opened, Schema, pragma
from toolfold.execution.runs import CALLS_BITS

_APPLICATION_ID: Final = 0x746F6C64
_CALLS_AT_ONCE: Final = 50

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
)

RESUMING: Final = ("intents", "wholes", "clocks")
"""The tables that are for runs which did not come to their own end."""

_UNUSED_LISTINGS: Final = """
    DELETE FROM listings WHERE id NOT IN (
        SELECT value FROM offers, json_each(offers.listings) UNION SELECT shown FROM offers
    )
"""

_SCHEMA: Final = Schema("the journal", _APPLICATION_ID, _STEPS)


def open_for_writing(
    path: Path, *, damaged: Identity | None = None, patience_s: float = PATIENCE_S
) -> Opened:
    """Open the journal; see `database.open_for_writing`."""
    return database.open_for_writing(path, _SCHEMA, damaged=damaged, patience_s=patience_s)


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """Open the journal as it is; see `database.open_for_reading`."""
    return database.open_for_reading(path, _SCHEMA)


def prune(connection: sqlite3.Connection, *, oldest: float, spared: float, max_bytes: int) -> None:
    """Delete the runs that began before `oldest`, and then the oldest while there is too much.

    Runs that began after `spared` stay. Others who write get their turn in between.

    Raises:
        sqlite3.Error: The database does not answer.
    """
    while first := connection.execute(
        "SELECT number, began_at FROM beginnings ORDER BY number LIMIT 1"
    ).fetchone():
        number, began_at = first
        _sweep(connection, below=number)
        is_too_much = began_at < spared and _used_bytes(connection) > max_bytes
        if began_at >= oldest and not is_too_much:
            break
        connection.execute("DELETE FROM beginnings WHERE number = ?", (number,))
    connection.execute(_UNUSED_LISTINGS)


def _sweep(connection: sqlite3.Connection, *, below: int) -> None:
    """Delete what belongs to runs whose beginning is deleted: all that is older than the oldest."""
    connection.execute("DELETE FROM ends WHERE number < ?", (below,))
    connection.execute("DELETE FROM offers WHERE number < ?", (below,))
    connection.execute("DELETE FROM progress WHERE number < ?", (below,))
    for table in RESUMING:
        connection.execute(f"DELETE FROM {table} WHERE id < ?", (below << CALLS_BITS,))  # noqa: S608
    for first, end in ((0, below), (1 << CALLS_BITS, below << CALLS_BITS)):
        connection.execute("DELETE FROM tokens WHERE id >= ? AND id < ?", (first, end))
    is_more = True
    while is_more:
        started = time.perf_counter()
        deleted = connection.execute(
            "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE id < ? ORDER BY id LIMIT ?)",
            (below << CALLS_BITS, _CALLS_AT_ONCE),
        )
        is_more = deleted.rowcount > 0
        # The lock goes to whoever asks first, and we would ask at once: leave others half the time.
        time.sleep(time.perf_counter() - started)


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = pragma(connection, "page_count") - pragma(connection, "freelist_count")
    return pages * pragma(connection, "page_size")
