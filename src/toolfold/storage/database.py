"""A SQLite file that is never set aside: shared by threads and processes, read and written."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Condition, Lock
from typing import Final, TypeAlias, TypeVar
from weakref import WeakSet

from toolfold.errors import StoreError
from toolfold.storage.files import locked, make_private_file
from toolfold.storage.migrations import DatabaseSchema, is_current, migrate
from toolfold.storage.sqlite_file import (
    UNWRITABLE,
    connect_read_only,
    primary_code,
    set_patience,
    transaction,
)

_T = TypeVar("_T")

Connection: TypeAlias = sqlite3.Connection
Cursor: TypeAlias = sqlite3.Cursor

_PATIENCE_S: Final = 30.0
_CACHE_KIB: Final = 16_384

_REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full. Free some space and try again",
    sqlite3.SQLITE_READONLY: "it can only be read: the file or its disk is write-protected",
    sqlite3.SQLITE_BUSY: "another process keeps it locked. Try again",
    sqlite3.SQLITE_CORRUPT: "it is damaged. It stays as it is; restore a backup",
    sqlite3.SQLITE_NOTADB: "it is not a database. Move it away, or name another file",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Check its directory and the rights to it",
}


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
                if primary_code(error) not in UNWRITABLE:
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
                        "another process reads it. Purge again when that has ended."
                    )

    def _connect_to_write(self) -> sqlite3.Connection:
        with ExitStack() as undo:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            undo.callback(connection.close)
            set_patience(connection, _PATIENCE_S)
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
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
            if primary_code(error) in UNWRITABLE:
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
        connection = connect_read_only(self._path, patience_s=_PATIENCE_S)
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


TOKENIZER: Final = "porter unicode61"


class Tokenizer:
    """Asks FTS5 itself, so that a word becomes the same term everywhere. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.execute(
            f"CREATE VIRTUAL TABLE query USING fts5(words, content = '', tokenize = '{TOKENIZER}')"
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab('query', 'row')")
        self._connection.execute("CREATE VIRTUAL TABLE places USING fts5vocab('query', 'instance')")

    def terms(self, words: Sequence[str]) -> list[str]:
        """Return the terms of these words, each once."""
        return self._ask(" ".join(words), "SELECT term FROM terms")

    def tokens(self, text: str) -> list[str]:
        """Return the terms of a text, in order, as often as they occur."""
        return self._ask(text, "SELECT term FROM places ORDER BY offset")

    def _ask(self, text: str, question: str) -> list[str]:
        with self._lock:
            self._connection.execute("INSERT INTO query (query) VALUES ('delete-all')")
            self._connection.execute("INSERT INTO query (words) VALUES (?)", (text,))
            return [term for (term,) in self._connection.execute(question)]
