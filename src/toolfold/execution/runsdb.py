"""The file that the journal writes: made private, opened, brought up to date, set aside, pruned."""

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.config.locks import try_lock
from toolfold.errors import StoreError
from toolfold.execution.runs import CALLS_BITS

_log = logging.getLogger(__name__)

PATIENCE_S: Final = 5.0
"""How long to wait for another process, where nobody else has to wait with us."""

_APPLICATION_ID: Final = 0x746F6C64
_CHECKPOINT_PAGES: Final = 2_000
_CALLS_AT_ONCE: Final = 50
_LOCK_POLL_S: Final = 0.01

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
        "ALTER TABLE beginnings ADD COLUMN generation INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE beginnings ADD COLUMN resumes TEXT NOT NULL DEFAULT ''",
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

Identity = tuple[int, int]


class Opened(NamedTuple):
    """A connection, and which file it is to, whatever its path leads to later."""

    connection: sqlite3.Connection
    identity: Identity


def open_for_writing(
    path: Path, *, damaged: Identity | None = None, patience_s: float = PATIENCE_S
) -> Opened:
    """Open the database, made if it is not there, mode 0600 in a directory of mode 0700.

    A file that is damaged, found to be or known to be (`damaged`), or not ours is set aside as
    `<name>.broken-<n>`, and a fresh one takes its place.

    Raises:
        StoreError: It cannot be made or opened, or a newer toolfold wrote it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        with _locked(path, patience_s):
            if damaged and identity_of(path) == damaged:
                _set_aside(path, "it is damaged")
            return _opened(path, patience_s)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"The journal {path} cannot be opened: {error}") from error


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """Open the database as it is; None if there is none.

    Raises:
        StoreError: It cannot be read, is not ours, or a newer toolfold wrote it.
    """
    if not path.exists():
        return None
    try:
        with _locked(path, PATIENCE_S):
            return _connect(path, PATIENCE_S)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"The journal {path} cannot be read: {error}. If it is damaged, the next run sets it "
            "aside and begins another."
        ) from error


def identity_of(path: Path) -> Identity | None:
    """Return what tells this file from any other that has its path later; None if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is at fault, not the moment."""
    return _primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds the database."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def set_patience(connection: sqlite3.Connection, seconds: float) -> None:
    """Say how long to wait for others."""
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


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
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _opened(path: Path, patience_s: float) -> Opened:
    """Open the file, or another in its place."""
    identity = _made(path)
    try:
        return Opened(_connect(path, patience_s), identity)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        _set_aside(path, str(error))
    identity = _made(path)
    return Opened(_connect(path, patience_s), identity)


def _made(path: Path) -> Identity:
    try:
        # Never open a file that is there: closing it would drop the locks of its connections.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        path.chmod(0o600)
    status = path.stat()
    return status.st_dev, status.st_ino


def _connect(path: Path, patience_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        set_patience(connection, patience_s)
        if not _is_current(connection):
            _bring_up_to_date(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        # Rows survive the death of the process. The disk is waited for at checkpoints only.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_current(connection: sqlite3.Connection) -> bool:
    return (_pragma(connection, "application_id"), _pragma(connection, "user_version")) == (
        _APPLICATION_ID,
        len(_STEPS),
    )


def _bring_up_to_date(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if _pragma(connection, "application_id") != _APPLICATION_ID and not is_empty:
        raise _not_ours()
    version = _pragma(connection, "user_version")
    if version > len(_STEPS):
        raise StoreError(f"The journal {path} was written by a newer toolfold: update this one.")
    for step in _STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(_STEPS)}")
    connection.execute("COMMIT")


def _not_ours() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("it belongs to another program")
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


def _set_aside(path: Path, reason: str) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    path.replace(aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    _log.warning("The journal %s cannot be used (%s): moved to %s.", path, reason, aside.name)


@contextmanager
def _locked(path: Path, patience_s: float) -> Iterator[None]:
    """Let one process at a time open the file, or one would set aside what another just made."""
    deadline = time.monotonic() + patience_s
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        while not try_lock(lock.fileno()):
            if time.monotonic() > deadline:
                raise TimeoutError("another process has been opening it for too long")
            time.sleep(_LOCK_POLL_S)
        yield


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
