"""The tables of a SQLite store, as numbered steps from an empty file to the present."""

import sqlite3
from typing import Final

from toolfold.errors import StoreError
from toolfold.memory.sqlite.steps import consolidation, documents, events, graph, notes

TOKENIZER: Final = "porter unicode61"

_APPLICATION_ID: Final = 0x746F6C6D

# Each step brings a database of the version that is its index to the next.
_STEPS: Final = (notes.STEP, graph.STEP, events.STEP, consolidation.STEP, documents.STEP)


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the database is ours and needs no step."""
    return (pragma(connection, "application_id"), pragma(connection, "user_version")) == (
        _APPLICATION_ID,
        len(_STEPS),
    )


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Take all steps that are missing, or none. To be called inside of a transaction.

    Raises:
        StoreError: The file belongs to another program or to a newer toolfold; it stays as it is.
        sqlite3.Error: The database does not take it.
    """
    is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if pragma(connection, "application_id") != _APPLICATION_ID and not is_empty:
        raise StoreError("it is a database of another program. Move it away, or name another file")
    version = pragma(connection, "user_version")
    if version > len(_STEPS):
        raise StoreError("a newer toolfold wrote it. Update this one")
    for step in _STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(_STEPS)}")


def make_namespace(connection: sqlite3.Connection, name: str) -> int:
    """Make a namespace that is not there yet, with its index of words; return its number."""
    made = connection.execute("INSERT INTO namespaces (name) VALUES (?)", (name,))
    number = made.lastrowid or 0
    make_words(connection, number)
    return number


def make_words(connection: sqlite3.Connection, namespace: int) -> None:
    """Make the index of words of a namespace.

    Each has its own, because scores depend on how often a word occurs in all of them.
    """
    # Without content: the notes hold it already.
    connection.execute(
        f"CREATE VIRTUAL TABLE {words_table(namespace)} "
        f"USING fts5(content, content = '', tokenize = '{TOKENIZER}')"
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE {vocabulary_table(namespace)} "
        f"USING fts5vocab('{words_table(namespace)}', 'instance')"
    )


def words_table(namespace: int) -> str:
    """Return the name of the table of words of a namespace."""
    return f"words_{namespace:d}"


def vocabulary_table(namespace: int) -> str:
    """Return the name of the table that gives each occurrence of each word."""
    return f"vocabulary_{namespace:d}"


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return a number that SQLite keeps about the database."""
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
