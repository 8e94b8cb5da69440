"""The file of vaults: never set aside, and on the disk with every change."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from toolfold.errors import StoreError
from toolfold.storage.files import locked, make_private, make_private_file
from toolfold.storage.migrations import (
    DatabaseSchema,
    ForeignDatabase,
    NewerDatabase,
    is_current,
    migrate,
)
from toolfold.storage.sqlite_file import FileConnection, is_damage, transaction
from toolfold.storage.tables import SqlTransaction

_T = TypeVar("_T")

_PATIENCE_MS: Final = 30_000
_MAX_FILE_BYTES: Final = 1024 * 1024 * 1024
_PAGE_BYTES: Final = 4096
_DAMAGED: Final = (
    " It was not changed: restore a backup, or move it away to start empty. Its values"
    " cannot be revealed then."
)


class KeptFile:
    """Implements `Tables` in a file that is never set aside. It is to be opened first.

    What it has acknowledged is on the disk, and what was deleted is not.
    """

    def __init__(self, path: Path, schema: DatabaseSchema) -> None:
        self._path = path
        self._schema = schema
        self._using = Lock()
        self._connection: FileConnection | None = None

    def is_there(self) -> bool:
        return self._path.exists()

    def open(self, find_key: Callable[[SqlTransaction], _T]) -> _T:
        """Make the file if there is none, for this user alone; return its key.

        One process at a time does so.

        Raises:
            StoreError: It cannot be opened, is damaged or not ours, a newer toolfold wrote it, or
                its key is not to be had.
        """
        with self._translated("cannot be opened"):
            make_private(self._path.parent)
            with locked(self._path, None):
                make_private_file(self._path)
                connection = _connect(self._path)
                try:
                    _bring_up_to_date(connection, self._path, self._schema)
                    key = find_key(connection)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
        return key

    def read(self, work: Callable[[SqlTransaction], _T]) -> _T:
        with self._using, self._translated("cannot be read"):
            return work(self._opened())

    def write(self, work: Callable[[SqlTransaction], _T]) -> _T:
        with self._using, self._translated("does not take this, and is as it was before"):
            connection = self._opened()
            # SQLite skips the busy timeout when a read turns into a write.
            with transaction(connection, "BEGIN IMMEDIATE"):
                return work(connection)

    def close(self) -> None:
        with self._using:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _opened(self) -> FileConnection:
        if self._connection is None:
            raise StoreError(f"The vaults in {self._path} are closed: open the store first.")
        return self._connection

    @contextmanager
    def _translated(self, trouble: str) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            advice = _DAMAGED if isinstance(error, sqlite3.Error) and is_damage(error) else ""
            raise StoreError(
                f"The file of vaults {self._path} {trouble}: {error}.{advice}"
            ) from error


def _connect(path: Path) -> FileConnection:
    """Open the file, shared by processes, waiting for the disk with every change."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=FileConnection
    )
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
    connection.execute("PRAGMA journal_mode = WAL")
    # A number that is lost with the power would be given again, to somebody else.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA max_page_count = {_MAX_FILE_BYTES // _PAGE_BYTES}")
    return connection


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, schema: DatabaseSchema) -> None:
    """Make the tables, or take them to the newest version.

    Raises:
        StoreError: The file is not ours, or a newer toolfold wrote it.
    """
    if is_current(connection, schema):
        return
    try:
        with transaction(connection, "BEGIN IMMEDIATE"):
            migrate(connection, schema)
    except ForeignDatabase as error:
        raise StoreError(f"{path} belongs to another program. Move it away.") from error
    except NewerDatabase as error:
        raise StoreError(f"{path} was written by a newer toolfold: update this one.") from error
