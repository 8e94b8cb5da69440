"""The tables of one store: in a SQLite file of its own, or in the PostgreSQL that replicas share.

Statements are written once, in the SQL that both have in common, with `?` for values.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from toolfold.errors import StoreError
from toolfold.storage.files import PATIENCE_S
from toolfold.storage.migrations import CopiedColumns, DatabaseSchema
from toolfold.storage.sqlite_file import (
    FileConnection,
    Identity,
    error_kind,
    identity_of,
    is_damage,
    open_for_reading,
    open_for_writing,
    set_patience,
    transaction,
    translated,
)

_T = TypeVar("_T")


class SqlCursor(Protocol):
    """What a statement has found or done."""

    @property
    def rowcount(self) -> int:
        """How many rows it has written."""

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class SqlStatements(Protocol):
    """Statements of one transaction."""

    def execute(self, sql: str, values: Sequence[object] = (), /) -> SqlCursor:
        """Do one statement."""

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> object:
        """Do one statement for each row of values."""

    def stream(self, sql: str) -> Iterable[Any]:
        """Give the rows of a statement without holding all of them."""

    def go_on_after_highest(self, table: str, column: str) -> None:
        """Have the numbers that the database gives go on after the highest that is there."""


class SqlTransaction(SqlStatements, Protocol):
    """One transaction of the tables of one store."""

    def next_number(self, table: str, column: str) -> int:
        """Return a number for a row that no row of the table had before. Only in `write`."""

    def used_bytes(self, tables: Sequence[str]) -> int:
        """Return about how much room the rows of some tables take."""

    def damage(self) -> str:
        """Return what is wrong with what is stored as a whole; empty where nothing is found."""

    def take_any_text(self) -> None:
        """Read texts that are no UTF-8 as well, with half surrogates for what is not."""


class Tables(Protocol):
    """The tables of one store. Any thread may use them; so may other processes. It blocks.

    Where rows are sealed, who shares the tables has the same key, or is refused.
    """

    def is_there(self) -> bool:
        """Whether anything can have been written yet. It takes no time."""

    def read(self, work: Callable[[SqlTransaction], _T]) -> _T:
        """Do `work`, which only reads, on the tables as they are at one moment.

        Raises:
            StoreError: They do not answer.
        """

    def write(self, work: Callable[[SqlTransaction], _T]) -> _T:
        """Do `work` wholly or not at all; nobody else writes to these tables meanwhile.

        It may be done again from the start where the database asks for it.

        Raises:
            StoreError: The database does not take it; nothing has changed.
        """

    def close(self) -> None:
        """Let go of connections; they are made again when they are needed."""


class LastingTables(Tables, Protocol):
    """Tables that a process has open for long, and asks often."""

    @property
    def file(self) -> object:
        """What tells what is open from another that took its place. None if nothing is."""

    def be_patient(self, seconds: float) -> None:
        """From now on, wait so long for others before `StoreBusy` is raised."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines may write as often as this process."""

    def append(self, work: Callable[[SqlTransaction], _T]) -> _T:
        """As `write`, for work that looks at no row count of what it writes.

        Statements may be sent before those before them were answered.
        """


class SqliteTables:
    """Implements `LastingTables` in a file that is set aside where it is damaged."""

    def __init__(self, path: Path, schema: DatabaseSchema, *, stays_open: bool = False) -> None:
        """Where it does not stay open, each use opens and closes the file."""
        self._path = path
        self._location = str(path)
        self._schema = schema
        self._stays_open = stays_open
        self._turn = Lock()
        self.file: FileConnection | None = None
        self.is_shared: Final = False
        self._identity: Identity | None = None
        self._damaged: Identity | None = None
        self._patience_s = PATIENCE_S

    def be_patient(self, seconds: float) -> None:
        with self._turn:
            self._patience_s = seconds
            if self.file is not None:
                set_patience(self.file, seconds)

    def is_there(self) -> bool:
        return self._path.exists()

    def read(self, work: Callable[[SqlTransaction], _T]) -> _T:
        with self._opened("cannot be read") as connection, transaction(connection, "BEGIN"):
            return work(connection)

    def write(self, work: Callable[[SqlTransaction], _T]) -> _T:
        # SQLite skips the busy timeout when a read turns into a write.
        with (
            self._opened("cannot be written") as connection,
            transaction(connection, "BEGIN IMMEDIATE"),
        ):
            return work(connection)

    def append(self, work: Callable[[SqlTransaction], _T]) -> _T:
        # Every call of a tool waits for this: contexts would take as long as the rows.
        with self._turn:
            try:
                connection = self._current()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    found = work(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._failure(error, "cannot be written") from error
            finally:
                if not self._stays_open:
                    self._let_go()
            return found

    def close(self) -> None:
        with self._turn:
            self._let_go()

    @contextmanager
    def _opened(self, trouble: str) -> Iterator[FileConnection]:
        """Give the connection to one at a time: another where the file is not what it was."""
        with self._turn:
            try:
                yield self._current()
            except sqlite3.Error as error:
                raise self._failure(error, trouble) from error
            finally:
                if not self._stays_open:
                    self._let_go()

    def _current(self) -> FileConnection:
        """Return the connection: another where the file is not what it was."""
        if self.file is not None and identity_of(self._location) == self._identity:
            return self.file
        self._let_go()
        self.file, self._identity = open_for_writing(
            self._path, self._schema, damaged=self._damaged, patience_s=self._patience_s
        )
        self._damaged = None
        set_patience(self.file, self._patience_s)
        return self.file

    def _failure(self, error: sqlite3.Error, trouble: str) -> StoreError:
        if is_damage(error):
            self._damaged = self._identity
            self._let_go()
        name = self._schema.name.capitalize()
        return error_kind(error)(f"{name} {self._path} {trouble}: {error}")

    def _let_go(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


def open_tables(
    path: Path, schema: DatabaseSchema, database_url: str, *, stays_open: bool = False
) -> LastingTables:
    """Return the tables of a store: in that PostgreSQL, or in a file where there is none.

    Raises:
        StoreError: What speaks to PostgreSQL is not installed.
    """
    if not database_url:
        return SqliteTables(path, schema, stays_open=stays_open)
    with needing_driver():
        from toolfold.storage.postgres import PostgresTables  # noqa: PLC0415  # an extra
    key = path.with_name(schema.key) if schema.key else None
    return PostgresTables(database_url, schema, key, stays_open=stays_open)


def read_tables(
    path: Path, schema: DatabaseSchema, database_url: str, work: Callable[[SqlTransaction], _T]
) -> _T | None:
    """Do `work` on tables as they are at one moment; None where there is no file.

    Raises:
        StoreDamaged: The file is damaged. It stays where it is.
        StoreError: They do not answer.
    """
    if database_url:
        return open_tables(path, schema, database_url).read(work)
    connection = open_for_reading(path, schema)
    if connection is None:
        return None
    with (
        closing(connection),
        translated(f"{schema.name.capitalize()} {path} cannot be read"),
        transaction(connection, "BEGIN"),
    ):
        return work(connection)


@contextmanager
def keeping_connections(database_url: str) -> Iterator[None]:
    """Have all stores in that PostgreSQL, if any, share connections for the length of a context.

    It need not answer, and nothing may be installed that speaks to it: who uses it is told.
    """
    if not database_url:
        yield
        return
    try:
        from toolfold.storage import postgres  # noqa: PLC0415  # an extra
    except ImportError:
        yield
    else:
        with postgres.keeping_connections(database_url):
            yield


@contextmanager
def needing_driver() -> Iterator[None]:
    """Say what to install where the body imports what is not there.

    Raises:
        StoreError: It is not.
    """
    try:
        yield
    except ImportError as error:
        raise StoreError(
            "`database_url` names a PostgreSQL database, and its driver is not installed: "
            "`pip install 'toolfold[postgres]'`."
        ) from error


_ROWS_AT_ONCE: Final = 500

Row = tuple[Any, ...]
Change = Callable[[Row], Row]


class CopiedTable(NamedTuple):
    """What was copied of one table, and what it comes to."""

    name: str
    rows: int
    sha256: str


def copy_store(
    source: Tables,
    target: Tables,
    tables: Iterable[CopiedColumns],
    progress: Callable[[str, int], None],
) -> list[CopiedTable]:
    """Put what is in some tables of `source` in the place of what is in those of `target`.

    Where the source holds nothing, no file is made for it.

    Raises:
        StoreError: One does not answer, or the copy is not what was copied: nothing has changed.
    """

    def is_empty(ours: SqlTransaction) -> bool:
        return not any(
            ours.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() for table in tables
        )

    if not source.is_there() or (not target.is_there() and source.read(is_empty)):
        return []

    def copied(ours: SqlTransaction, theirs: SqlTransaction) -> list[CopiedTable]:
        for table in tables:
            theirs.execute(f"DELETE FROM {table.name}")
        for table in tables:
            progress(table.name, copy_rows(ours, theirs, table))
        for table in tables:
            theirs.go_on_after_highest(table.name, table.numbered)
        return [compare(ours, theirs, table) for table in tables]

    return source.read(lambda ours: target.write(lambda theirs: copied(ours, theirs)))


def copy_rows(
    source: SqlStatements,
    target: SqlStatements,
    table: CopiedColumns,
    *,
    plain: Change = tuple,
    stored: Change = tuple,
) -> int:
    """Add all rows of a table; return how many.

    `plain` brings a row to the form that both have, and `stored` to that of the target.
    """
    marks = ", ".join("?" * len(table.columns.split(", ")))
    insert = f"INSERT INTO {table.name} ({table.columns}) VALUES ({marks})"
    rows = map(stored, _rows(source, table, plain))
    count = 0
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        target.executemany(insert, some)
        count += len(some)
    return count


def compare(
    source: SqlStatements, target: SqlStatements, table: CopiedColumns, *, plain: Change = tuple
) -> CopiedTable:
    """Return what a table comes to in both.

    Raises:
        StoreError: It is not the same.
    """
    here, there = (_summed(each, table, plain) for each in (source, target))
    if here != there:
        raise StoreError(
            f"The copy of {table.name} is not what was copied ({there.rows} rows of {here.rows}). "
            "Nothing was changed. Report this, please."
        )
    return there


def _rows(connection: SqlStatements, table: CopiedColumns, plain: Change) -> Iterator[Row]:
    """Give the rows of a table in the same form and order, whichever database it is in."""
    order = ", ".join(table.columns.split(", ")[: table.keys])
    return map(
        plain, connection.stream(f"SELECT {table.columns} FROM {table.name} ORDER BY {order}")
    )


def _summed(connection: SqlStatements, table: CopiedColumns, plain: Change) -> CopiedTable:
    digest, count = hashlib.sha256(), 0
    for row in _rows(connection, table, plain):
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
        count += 1
    return CopiedTable(table.name, count, digest.hexdigest())
