"""Bring a database from any version of its tables to the present, by numbered steps."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from toolfold.errors import StoreError


class CopiedColumns(NamedTuple):
    """What is copied of a table that moves to another database."""

    name: str
    columns: str
    keys: int = 1
    """How many of its first columns tell its rows apart."""

    numbered: str = ""
    """The column whose next value the database itself gives."""


class SqlFunctions(Protocol):
    """Where a function is put that statements call by its name."""

    def create_function(self, name: str, count: int, called: Callable[..., Any], /) -> None:
        """Have a function of that many values called."""


class DatabaseSchema(NamedTuple):
    """What is in a file, and what tells it from those of other programs."""

    name: str
    """What the file is called in messages: the journal."""

    application_id: int
    steps: tuple[tuple[str, ...], ...]
    """Each brings a file of the version that is its index to the next."""

    prepare: Callable[[SqlFunctions, Path], None] | None = None
    """Gives a connection to that path what the steps call."""

    beside: tuple[str, ...] = ()
    """The ends of the names of files that belong to it, and are set aside with it."""

    is_kept: bool = False
    """Whether a file that is damaged stays where it is, and is not set aside."""

    tables: tuple[CopiedColumns, ...] = ()
    """What moves to another database; whatever refers to another comes after it."""

    key: str = ""
    """The name of the file beside it with the key that its rows are sealed with."""

    postgres: tuple[tuple[str, ...], ...] | None = None
    """The steps in PostgreSQL, where they are not those that its words make of `steps`."""


class ForeignDatabase(StoreError):
    """The file belongs to another program; it stays as it is."""


class NewerDatabase(StoreError):
    """A newer toolfold wrote the file; it stays as it is."""


def is_current(connection: sqlite3.Connection, schema: DatabaseSchema) -> bool:
    """Whether the file is ours and needs no step."""
    return (pragma(connection, "application_id"), pragma(connection, "user_version")) == (
        schema.application_id,
        len(schema.steps),
    )


def migrate(connection: sqlite3.Connection, schema: DatabaseSchema) -> None:
    """Take all steps that are missing. To be called inside of a transaction.

    Raises:
        ForeignDatabase: The file belongs to another program.
        NewerDatabase: A newer toolfold wrote it.
        sqlite3.Error: The database does not take it.
    """
    is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if pragma(connection, "application_id") != schema.application_id and not is_empty:
        raise ForeignDatabase("it belongs to another program. Move it away, or name another file")
    for statement in missing_statements(schema, pragma(connection, "user_version")):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.application_id}")
    connection.execute(f"PRAGMA user_version = {len(schema.steps)}")


def missing_statements(schema: DatabaseSchema, version: int) -> list[str]:
    """Return what brings a database of that version to the present, in order.

    Raises:
        NewerDatabase: A newer toolfold wrote it.
    """
    if version > len(schema.steps):
        raise NewerDatabase("a newer toolfold wrote it. Update this one")
    return [statement for step in schema.steps[version:] for statement in step]


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return a number that the file keeps about itself."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
