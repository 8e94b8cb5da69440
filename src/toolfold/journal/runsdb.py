"""The file that the journal writes: its tables, opened, and rid of the oldest runs."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from toolfold.errors import StoreError
from toolfold.journal.audit.chain import AUDITED, SUFFIX, prepare, trigger
from toolfold.journal.runs import CALLS_BITS
from toolfold.storage import sqlite_file
from toolfold.storage.files import PATIENCE_S
from toolfold.storage.migrations import DatabaseSchema, pragma
from toolfold.storage.sqlite_file import Identity, Opened

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
        *map(trigger, AUDITED),
    ),
)

RESUMING: Final = ("intents", "wholes", "clocks")
"""The tables that are for runs which did not come to their own end."""

SCHEMA: Final = DatabaseSchema("the journal", _APPLICATION_ID, _STEPS, prepare, (SUFFIX,))


def open_for_writing(
    path: Path, *, damaged: Identity | None = None, patience_s: float = PATIENCE_S
) -> Opened:
    """Open the journal; see `sqlite_file.open_for_writing`."""
    return sqlite_file.open_for_writing(path, SCHEMA, damaged=damaged, patience_s=patience_s)


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """Open the journal as it is; see `sqlite_file.open_for_reading`."""
    return sqlite_file.open_for_reading(path, SCHEMA)


def read_journal(path: Path, read: Callable[[sqlite3.Connection], _Read]) -> _Read | None:
    """Ask the journal as it is; None if there is none.

    Raises:
        StoreError: The file does not answer.
    """
    connection = open_for_reading(path)
    if connection is None:
        return None
    try:
        with closing(connection):
            return read(connection)
    except sqlite3.Error as error:
        raise StoreError(f"The journal {path} cannot be read: {error}") from error


_CALLS_AT_ONCE: Final = 50
_ENTRIES_AT_ONCE: Final = 500

_UNUSED_LISTINGS: Final = """
    DELETE FROM listings WHERE id NOT IN (
        SELECT value FROM offers, json_each(offers.listings) UNION SELECT shown FROM offers
    )
"""

_AT_MOST: Final = "SELECT min(began_at) FROM beginnings WHERE number >= ?"

_RUN_KEYS: Final = (*RESUMING, "decisions", "reveals")
"""The tables in which the run is the upper part of the key, and that are short."""

# An anchor that somebody else wrote is never signed.
_OURS: Final = "seal = audit_anchor(seq, chain, since, below)"
_PRUNED: Final = f"""
    UPDATE anchor SET below = ?1, seal = audit_anchor(seq, chain, since, ?1)
    WHERE below < ?1 AND {_OURS}
"""  # noqa: S608
_MOVED: Final = f"""
    UPDATE anchor SET seq = ?1, chain = ?2, seal = audit_anchor(?1, ?2, since, below)
    WHERE {_OURS}
"""  # noqa: S608
# A run has no entry before that of its beginning. Entries of runs that nobody pruned stay, though
# their rows are gone; and so does the last one, after which the next is numbered.
_FIRST_LEFT: Final = """
    SELECT ifnull(
        (SELECT seq FROM audit WHERE kind = 'begin'
            AND ref >= min(?, (SELECT below FROM anchor)) ORDER BY seq LIMIT 1),
        (SELECT max(seq) FROM audit)
    )
"""


def prune(connection: sqlite3.Connection, *, oldest: float, spared: float, max_bytes: int) -> None:
    """Delete the runs that began before `oldest`, and then the oldest while there is too much.

    Runs that began after `spared` stay. Others who write get their turn in between.

    Raises:
        sqlite3.Error: The database does not answer.
    """
    below = _prune_runs(connection, oldest=oldest, spared=spared, max_bytes=max_bytes)
    connection.execute(_UNUSED_LISTINGS)
    _trim(connection, below=below)


def _prune_runs(
    connection: sqlite3.Connection, *, oldest: float, spared: float, max_bytes: int
) -> int:
    """Delete runs, and return the number below which nothing is left of any."""
    while first := connection.execute(
        "SELECT number, began_at FROM beginnings ORDER BY number LIMIT 1"
    ).fetchone():
        number, began_at = first
        _sweep(connection, below=number)
        if began_at > spared:  # or a clock was ahead: none began after those that came later
            began_at = connection.execute(_AT_MOST, (number,)).fetchone()[0]
        is_too_much = began_at < spared and _used_bytes(connection) > max_bytes
        if began_at >= oldest and not is_too_much:
            return int(number)
        connection.execute(_PRUNED, (number + 1,))  # first, or a row would seem to be missing
        connection.execute("DELETE FROM beginnings WHERE number = ?", (number,))
    below: int = connection.execute("SELECT below FROM anchor").fetchone()[0]
    _sweep(connection, below=below)
    return below


def _sweep(connection: sqlite3.Connection, *, below: int) -> None:
    """Delete what belongs to runs whose beginning is deleted: all that is older than the oldest."""
    connection.execute("DELETE FROM ends WHERE number < ?", (below,))
    connection.execute("DELETE FROM offers WHERE number < ?", (below,))
    connection.execute("DELETE FROM progress WHERE number < ?", (below,))
    for table in _RUN_KEYS:
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


def _trim(connection: sqlite3.Connection, *, below: int) -> None:
    """Delete the entries that come before any of a run that is left, and move the anchor there.

    Nothing else may be left of the runs before.
    """
    first_left = connection.execute(_FIRST_LEFT, (below,)).fetchone()[0] or 0
    is_more = True
    while is_more:
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        try:
            is_more = _trim_some(connection, first_left)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        time.sleep(time.perf_counter() - started)


def _trim_some(connection: sqlite3.Connection, first_left: int) -> bool:
    last = (
        connection.execute(
            "SELECT seq, substr(link, 33) FROM audit WHERE seq < ? ORDER BY seq LIMIT 1 OFFSET ?",
            (first_left, _ENTRIES_AT_ONCE - 1),
        ).fetchone()
        or connection.execute(
            "SELECT seq, substr(link, 33) FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1",
            (first_left,),
        ).fetchone()
    )
    if last is None or not connection.execute(_MOVED, last).rowcount:
        return False
    connection.execute("DELETE FROM audit WHERE seq <= ?", (last[0],))
    return True


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = pragma(connection, "page_count") - pragma(connection, "freelist_count")
    return pages * pragma(connection, "page_size")
