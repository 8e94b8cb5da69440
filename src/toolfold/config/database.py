"""A private SQLite file: made, opened, brought up to date by numbered steps, set aside."""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.config.locks import try_lock
from toolfold.errors import StoreError

_log = logging.getLogger(__name__)

PATIENCE_S: Final = 5.0
"""How long to wait for another process, where nobody else has to wait with us."""

_CHECKPOINT_PAGES: Final = 2_000
_LOCK_POLL_S: Final = 0.01

Identity = tuple[int, int]


class DatabaseSchema(NamedTuple):
    """What is in a file, and what tells it from those of other programs."""

    name: str
    """What the file is called in messages: the journal."""

    application_id: int
    steps: tuple[tuple[str, ...], ...]
    """Each brings a file of the version that is its index to the next."""

    prepare: Callable[[sqlite3.Connection, Path], None] | None = None
    """Gives a connection to that path what the steps and the triggers of the file call."""

    beside: tuple[str, ...] = ()
    """The ends of the names of files that belong to it, and are set aside with it."""


class Opened(NamedTuple):
    """A connection, and which file it is to, whatever its path leads to later."""

    connection: sqlite3.Connection
    identity: Identity


def open_for_writing(
    path: Path,
    schema: DatabaseSchema,
    *,
    damaged: Identity | None = None,
    patience_s: float = PATIENCE_S,
) -> Opened:
    """Open the database, made if it is not there, mode 0600 in a directory of mode 0700.

    Any thread may use the connection, one at a time.

    A file that is damaged, found to be or known to be (`damaged`), or not ours is set aside as
    `<name>.broken-<n>`, and a fresh one takes its place.

    Raises:
        StoreError: It cannot be made or opened, or a newer toolfold wrote it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        # Or one would set aside what another just made.
        with locked(path, patience_s):
            if damaged and identity_of(path) == damaged:
                _set_aside(path, schema, "it is damaged")
            return _opened(path, schema, patience_s)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{schema.name.capitalize()} {path} cannot be opened: {error}") from error


def open_for_reading(path: Path, schema: DatabaseSchema) -> sqlite3.Connection | None:
    """Open the database as it is; None if there is none.

    Raises:
        StoreError: It cannot be read, is not ours, or a newer toolfold wrote it.
    """
    if not path.exists():
        return None
    try:
        with locked(path, PATIENCE_S):
            return _connect(path, schema, PATIENCE_S)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{schema.name.capitalize()} {path} cannot be read: {error}. If it is damaged, whoever "
            "writes to it next sets it aside and begins another."
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


def _opened(path: Path, schema: DatabaseSchema, patience_s: float) -> Opened:
    """Open the file, or another in its place."""
    identity = _made(path)
    try:
        return Opened(_connect(path, schema, patience_s), identity)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        _set_aside(path, schema, str(error))
    identity = _made(path)
    return Opened(_connect(path, schema, patience_s), identity)


def _made(path: Path) -> Identity:
    try:
        # Never open a file that is there: closing it would drop the locks of its connections.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        path.chmod(0o600)
    status = path.stat()
    return status.st_dev, status.st_ino


def _connect(path: Path, schema: DatabaseSchema, patience_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        set_patience(connection, patience_s)
        if schema.prepare is not None:
            schema.prepare(connection, path)
        if not _is_current(connection, schema):
            _bring_up_to_date(connection, path, schema)
        connection.execute("PRAGMA journal_mode = WAL")
        # Rows survive the death of the process. The disk is waited for at checkpoints only.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    except UnicodeError as error:  # SQLite's own message quotes what is damaged
        connection.close()
        raise _damage("its schema is malformed") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _is_current(connection: sqlite3.Connection, schema: DatabaseSchema) -> bool:
    return (pragma(connection, "application_id"), pragma(connection, "user_version")) == (
        schema.application_id,
        len(schema.steps),
    )


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, schema: DatabaseSchema) -> None:
    connection.execute("BEGIN IMMEDIATE")
    is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if pragma(connection, "application_id") != schema.application_id and not is_empty:
        raise _damage("it belongs to another program")
    version = pragma(connection, "user_version")
    if version > len(schema.steps):
        raise StoreError(
            f"{schema.name.capitalize()} {path} was written by a newer toolfold: update this one."
        )
    for step in schema.steps[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.application_id}")
    connection.execute(f"PRAGMA user_version = {len(schema.steps)}")
    connection.execute("COMMIT")


def _damage(reason: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


def _set_aside(path: Path, schema: DatabaseSchema, reason: str) -> None:
    number = 1
    while (aside := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    path.replace(aside)
    for suffix in ("-wal", "-shm", *schema.beside):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    _log.warning(
        "%s %s cannot be used (%s): moved to %s.",
        *(schema.name.capitalize(), path, reason, aside.name),
    )


@contextmanager
def locked(path: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold `<path>.lock`, so that one process at a time does what it is for.

    Raises:
        TimeoutError: Another has held it all the time.
    """
    deadline = time.monotonic() + patience_s
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        while not try_lock(lock.fileno()):
            if time.monotonic() > deadline:
                raise TimeoutError("another process has held its lock for too long")
            time.sleep(_LOCK_POLL_S)
        yield


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return a number that the file keeps about itself."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
