"""Bring a SQLite file from any version of its tables to the present, by numbered steps."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from toolfold.errors import StoreError


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
    version = pragma(connection, "user_version")
    if version > len(schema.steps):
        raise NewerDatabase("a newer toolfold wrote it. Update this one")
    for step in schema.steps[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.application_id}")
    connection.execute(f"PRAGMA user_version = {len(schema.steps)}")


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return a number that the file keeps about itself."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
