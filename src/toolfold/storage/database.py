"""A SQLite file that is never set aside: shared by threads and processes, read and written."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Condition, Lock
from typing import Final, TypeVar
from weakref import WeakSet

from toolfold.errors import StoreError
from toolfold.storage.files import make_private_file
from toolfold.storage.locks import locked
from toolfold.storage.migrations import DatabaseSchema, is_current, migrate
from toolfold.storage.sqlite_file import primary_code, transaction

_T = TypeVar("_T")

_PATIENCE_MS: Final = 30_000
_CACHE_KIB: Final = 16_384

_REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full. Free some space and try again",
    sqlite3.SQLITE_READONLY: "it can only be read: the file or its disk is write-protected",
    sqlite3.SQLITE_BUSY: "another process keeps it locked. Try again",
    sqlite3.SQLITE_CORRUPT: "it is damaged. It stays as it is; put a backup in its place",
    sqlite3.SQLITE_NOTADB: "it is not a database. Move it away, or name another file",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Check its directory and the rights to it",
}
_UNWRITABLE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}


class Database:
    """One file. Any thread may read and write; so may other processes, at the same time.

    A process may fork while it is open. Where the file cannot be written, it can still be read.
    """

    def __init__(self, path: Path, schema: DatabaseSchema) -> None:
        self._path = path
        self._schema = schema
        self._name = f"{schema.name.capitalize()} {path}"
        self._writing = Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._reading = Condition()
        self._busy_readers = 0
        _databases.add(self)

    def open(self) -> None:
        """Make the file if there is none, mode 0600, and bring its tables up to date.

        Raises:
            StoreError: It cannot be made or opened, is not ours, or a newer toolfold wrote it.
        """
        with self._translated("cannot be opened"):
            with suppress(OSError):  # where nothing can be made, opening says why
                make_private_file(self._path)
            try:
                self._writer = self._connect_to_write()
            except sqlite3.OperationalError as error:
                if primary_code(error) not in _UNWRITABLE:
                    raise
                self._readers.append(self._connect_to_read())

    def close(self) -> None:
        """Close every connection; the log of changes goes into the file."""
        for connection in (*self._readers, self._writer):
            if connection is not None:
                connection.close()
        self._readers, self._writer = [], None

    def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do `work` on the database as it is at one moment.

        Raises:
            StoreError: It does not answer.
        """
        with self._counted_as_reader(), self._translated("cannot be read"):
            connection = self._reader()
            with ExitStack() as undo:
                undo.callback(connection.close)
                with transaction(connection, "BEGIN"):
                    found = work(connection)
                undo.pop_all()
            self._readers.append(connection)
            return found

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do `work` wholly or not at all. What it wrote is on the disk when this returns.

        Raises:
            StoreError: The database does not take it; nothing has changed.
        """
        with self._writing, self._translated("does not take this, and is as it was before"):
            if self._writer is None:
                self._writer = self._connect_to_write_again()
            # SQLite skips the busy timeout when a read turns into a write.
            with transaction(self._writer, "BEGIN IMMEDIATE"):
                return work(self._writer)

    def empty_log(self) -> None:
        """Put the log of changes into the file, and cut it to nothing.

        Raises:
            StoreError: A process that reads stood in the way for too long.
        """
        with self._writing, self._translated("cannot be cleaned up"):
            if self._writer is not None:
                [is_busy, *_] = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if is_busy:
                    raise StoreError(
                        f"What was erased from {self._path} still stands in its log, because "
                        "another process reads it. Purge once more when that has ended."
                    )

    def _connect_to_write(self) -> sqlite3.Connection:
        with ExitStack() as undo:
            connection = self._connect(self._path)
            undo.callback(connection.close)
            if not is_current(connection, self._schema):
                self._set_up(connection)
            # Every commit waits for the disk, and what is deleted is overwritten.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            undo.pop_all()
        return connection

    def _connect_to_write_again(self) -> sqlite3.Connection:
        """Try what failed when the file was opened: it could be read, so it is write-protected."""
        try:
            return self._connect_to_write()
        except sqlite3.OperationalError as error:
            if primary_code(error) in _UNWRITABLE:
                error.sqlite_errorcode = sqlite3.SQLITE_READONLY
            raise

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Take the steps that are missing, one process at a time."""
        with locked(self._path, None):  # SQLite gives up at once when two change to WAL
            connection.execute("PRAGMA journal_mode = WAL")
            try:
                with transaction(connection, "BEGIN IMMEDIATE"):
                    migrate(connection, self._schema)
            except StoreError as error:
                raise StoreError(f"{self._name} cannot be opened: {error}.") from error

    def _connect_to_read(self) -> sqlite3.Connection:
        """Open the file as it is; on a disk that cannot be written, without its log if need be."""
        location = self._path.absolute().as_uri()
        for access in ("mode=ro", "immutable=1"):
            try:
                connection = self._connect(f"{location}?{access}", is_uri=True)
                connection.execute("SELECT 1 FROM sqlite_master")
            except sqlite3.OperationalError as error:
                if access == "immutable=1" or not self._path.exists():
                    raise
                if primary_code(error) not in _UNWRITABLE or self._has_log():
                    raise
            else:
                return connection
        raise AssertionError("unreachable")

    def _has_log(self) -> bool:
        log = self._path.with_name(f"{self._path.name}-wal")
        return log.exists() and log.stat().st_size > 0

    def _connect(self, location: Path | str, *, is_uri: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            location, isolation_level=None, check_same_thread=False, uri=is_uri
        )
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return connection

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return self._connect_to_read()

    @contextmanager
    def _counted_as_reader(self) -> Iterator[None]:
        with self._reading:
            self._busy_readers += 1
        try:
            yield
        finally:
            with self._reading:
                self._busy_readers -= 1
                self._reading.notify_all()

    def hold(self) -> None:
        """Wait until nobody reads or writes, and close; nobody begins to until `go_on`."""
        self._writing.acquire()
        self._reading.acquire()
        self._reading.wait_for(lambda: not self._busy_readers)
        self.close()

    def go_on(self) -> None:
        """Let connections be opened again."""
        self._reading.release()
        self._writing.release()

    @contextmanager
    def _translated(self, failure: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = _REASONS.get(primary_code(error) or 0, str(error))
            raise StoreError(f"{self._name} {failure}: {reason}.") from error
        except OSError as error:
            raise StoreError(f"{self._name} {failure}: {error.strerror}.") from error


# SQLite remembers which locks a process holds. A forked child inherits that memory and not the
# locks, so no database may be open while a process forks.
_databases: Final[WeakSet[Database]] = WeakSet()
_held: Final[list[Database]] = []


def _before_fork() -> None:
    _held[:] = _databases
    for database in _held:
        database.hold()


def _after_fork() -> None:
    while _held:
        _held.pop().go_on()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
