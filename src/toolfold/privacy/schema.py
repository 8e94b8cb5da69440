"""The file of vaults: opened, and its tables brought up to date by numbered steps."""

import sqlite3
from pathlib import Path
from typing import Final

from toolfold.errors import StoreError
from toolfold.storage.migrations import (
    DatabaseSchema,
    ForeignDatabase,
    NewerDatabase,
    is_current,
    migrate,
)
from toolfold.storage.sqlite_file import transaction

_PATIENCE_MS: Final = 30_000
_MAX_FILE_BYTES: Final = 1024 * 1024 * 1024
_PAGE_BYTES: Final = 4096

# Each step brings a database of the version that is its index to the next.
SCHEMA: Final = DatabaseSchema(
    "the file of vaults",
    0x746F6C76,
    (
        (
            "CREATE TABLE keys (place TEXT NOT NULL, fingerprint BLOB NOT NULL)",
            """
        CREATE TABLE scopes (
            id BLOB PRIMARY KEY,
            base INTEGER NOT NULL,
            used_at REAL NOT NULL
        ) WITHOUT ROWID
        """,
            """
        CREATE TABLE pages (
            scope BLOB NOT NULL,
            number INTEGER NOT NULL,
            sealed BLOB NOT NULL,
            PRIMARY KEY (scope, number)
        ) WITHOUT ROWID
        """,
        ),
    ),
)


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, shared by processes, waiting for the disk with every change."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
    connection.execute("PRAGMA journal_mode = WAL")
    # A number that is lost with the power would be given again, to somebody else.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA max_page_count = {_MAX_FILE_BYTES // _PAGE_BYTES}")
    return connection


def bring_up_to_date(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or take them to the newest version.

    Raises:
        StoreError: The file is not ours, or a newer toolfold wrote it.
    """
    if is_current(connection, SCHEMA):
        return
    try:
        with transaction(connection, "BEGIN IMMEDIATE"):
            migrate(connection, SCHEMA)
    except ForeignDatabase as error:
        raise StoreError(f"{path} belongs to another program. Move it away.") from error
    except NewerDatabase as error:
        raise StoreError(f"{path} was written by a newer toolfold: update this one.") from error
