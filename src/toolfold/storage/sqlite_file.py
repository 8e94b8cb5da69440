"""A private SQLite file that is set aside where it is damaged: made, opened, brought up to date."""

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.errors import StoreBusy, StoreDamaged, StoreError
from toolfold.storage.files import PATIENCE_S, locked, make_private, make_private_file
from toolfold.storage.migrations import (
    DatabaseSchema,
    ForeignDatabase,
    NewerDatabase,
    is_current,
    migrate,
    pragma,
)

_log = logging.getLogger(__name__)

_CHECKPOINT_PAGES: Final = 2_000
UNWRITABLE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
"""What SQLite says of a file, or of a directory, that can only be read."""

_HIGHEST: Final = "SELECT seq FROM sqlite_sequence WHERE name = ?"

Identity = tuple[int, int]


class FileConnection(sqlite3.Connection):
    """A connection that can be used where one to another database may be."""

    def stream(self, sql: str) -> sqlite3.Cursor:
        """See `SqlTransaction.stream`."""
        return self.execute(sql)

    def go_on_after_highest(self, _table: str, _column: str) -> None:
        """See `SqlTransaction.go_on_after_highest`. SQLite does so by itself."""

    def next_number(self, table: str, _column: str) -> int:
        """See `SqlTransaction.next_number`."""
        found = self.execute(_HIGHEST, (table,)).fetchone()
        return 1 + found[0] if found else 1

    def used_bytes(self, _tables: Sequence[str]) -> int:
        """See `SqlTransaction.used_bytes`."""
        pages = pragma(self, "page_count") - pragma(self, "freelist_count")
        return pages * pragma(self, "page_size")

    def damage(self) -> str:
        """See `SqlTransaction.damage`."""
        said = str(self.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return "" if said == "ok" else said

    def take_any_text(self) -> None:
        """See `SqlTransaction.take_any_text`."""
        self.text_factory = lambda text: text.decode("utf-8", "surrogateescape")


class Opened(NamedTuple):
    """A connection, and which file it is to, whatever its path leads to later."""

    connection: FileConnection
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
        make_private(path.parent)
        # Or one would set aside what another just made.
        with locked(path, patience_s):
            if damaged and identity_of(path) == damaged:
                _set_aside(path, schema, "it is damaged")
            return _opened(path, schema, patience_s)
    except (OSError, sqlite3.Error) as error:
        kind = error_kind(error)
        raise kind(f"{schema.name.capitalize()} {path} cannot be opened: {error}") from error


def open_for_reading(path: Path, schema: DatabaseSchema) -> FileConnection | None:
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
        raise error_kind(error)(
            f"{schema.name.capitalize()} {path} cannot be read: {error}. If it is "
            "damaged, the next write sets it aside and starts a new one."
        ) from error


def connect_read_only(path: Path, *, patience_s: float = PATIENCE_S) -> sqlite3.Connection:
    """Open a file as it is; on a disk that cannot be written, without its log if that is empty.

    Any thread may use the connection, one at a time.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    for access in ("mode=ro", "immutable=1"):
        location = f"{path.absolute().as_uri()}?{access}"
        connection = sqlite3.connect(
            location, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            set_patience(connection, patience_s)
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            connection.close()
            is_last = access == "immutable=1" or not path.exists()
            if is_last or primary_code(error) not in UNWRITABLE or _has_log(path):
                raise
        else:
            return connection
    raise AssertionError("unreachable")


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def identity_of(path: Path | str) -> Identity | None:
    """Return what tells this file from any other that has its path later; None if it is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116  # asked with every write
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is at fault, not the moment."""
    return primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds the database."""
    return primary_code(error) == sqlite3.SQLITE_BUSY


def error_kind(error: OSError | sqlite3.Error) -> type[StoreError]:
    """Return what an error of SQLite is to those who know nothing of SQLite."""
    if isinstance(error, sqlite3.Error):
        return StoreDamaged if is_damage(error) else StoreBusy if is_busy(error) else StoreError
    return StoreError


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise errors of SQLite as ours; the message begins with `what`.

    Raises:
        StoreBusy: Another process holds the file.
        StoreDamaged: It is damaged.
        StoreError: It does not answer for another reason.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise error_kind(error)(f"{what}: {error}") from error


def set_patience(connection: sqlite3.Connection, seconds: float) -> None:
    """Say how long to wait for others."""
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def _opened(path: Path, schema: DatabaseSchema, patience_s: float) -> Opened:
    """Open the file, or another in its place."""
    identity = _made(path)
    try:
        return Opened(_connect(path, schema, patience_s), identity)
    except sqlite3.Error as error:
        if schema.is_kept or not is_damage(error):
            raise
        _set_aside(path, schema, str(error))
    identity = _made(path)
    return Opened(_connect(path, schema, patience_s), identity)


def _made(path: Path) -> Identity:
    make_private_file(path)
    status = path.stat()
    return status.st_dev, status.st_ino


def _connect(path: Path, schema: DatabaseSchema, patience_s: float) -> FileConnection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=FileConnection
    )
    try:
        set_patience(connection, patience_s)
        if schema.prepare is not None:
            schema.prepare(connection, path)
        if not is_current(connection, schema):
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


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, schema: DatabaseSchema) -> None:
    try:
        with transaction(connection, "BEGIN IMMEDIATE"):
            migrate(connection, schema)
    except ForeignDatabase as error:
        raise _damage("it belongs to another program") from error
    except NewerDatabase as error:
        raise NewerDatabase(
            f"{schema.name.capitalize()} {path} was written by a newer toolfold: update this one."
        ) from error


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
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Do all that is done in this context, or nothing."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures have rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def primary_code(error: sqlite3.Error) -> int | None:
    """Return what kind of error it is, whatever made it."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
