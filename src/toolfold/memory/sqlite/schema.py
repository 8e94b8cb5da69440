"""The tables of a SQLite store, as numbered steps from an empty file to the present."""

import sqlite3
from typing import Final

from toolfold.errors import StoreError

TOKENIZER: Final = "porter unicode61"

_APPLICATION_ID: Final = 0x746F6C6D

# Each step brings a database of the version that is its index to the next.
_STEPS: Final = (
    (
        # One row: who made the vectors, and a number that grows with every transaction that writes.
        """
        CREATE TABLE state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            changed INTEGER NOT NULL,
            embedder TEXT,
            dimensions INTEGER
        )
        """,
        "INSERT INTO state VALUES (1, 0, NULL, NULL)",
        # How many notes are not deleted: counting 100,000 takes longer than all else in a search.
        """
        CREATE TABLE namespaces (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            notes INTEGER NOT NULL DEFAULT 0
        )
        """,
        """
        CREATE TABLE threads (
            id INTEGER PRIMARY KEY,
            namespace INTEGER NOT NULL REFERENCES namespaces,
            name TEXT NOT NULL,
            UNIQUE (namespace, name)
        )
        """,
        # The numbers of purged notes are not used again: other processes may still hold them.
        """
        CREATE TABLE notes (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            namespace INTEGER NOT NULL REFERENCES namespaces,
            hash TEXT NOT NULL,
            version INTEGER NOT NULL,
            type TEXT NOT NULL,
            source TEXT NOT NULL,
            thread INTEGER REFERENCES threads,
            position INTEGER,
            quality REAL NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            deleted REAL,
            tags TEXT NOT NULL,
            metadata TEXT NOT NULL,
            content TEXT NOT NULL,
            UNIQUE (namespace, hash)
        )
        """,
        "CREATE INDEX notes_by_time ON notes (namespace, created, number) WHERE deleted IS NULL",
        "CREATE INDEX notes_by_type ON notes (namespace, type, created) WHERE deleted IS NULL",
        # Of notes that are not deleted, as are the words.
        """
        CREATE TABLE tags (
            namespace INTEGER NOT NULL,
            tag TEXT NOT NULL,
            number INTEGER NOT NULL REFERENCES notes,
            PRIMARY KEY (namespace, tag, number)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE links (
            number INTEGER NOT NULL REFERENCES notes,
            kind TEXT NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (number, kind, hash)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE versions (
            number INTEGER NOT NULL REFERENCES notes,
            version INTEGER NOT NULL,
            namespace INTEGER NOT NULL,
            hash TEXT NOT NULL,
            type TEXT NOT NULL,
            source TEXT NOT NULL,
            quality REAL NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            tags TEXT NOT NULL,
            metadata TEXT NOT NULL,
            content TEXT NOT NULL,
            PRIMARY KEY (number, version)
        )
        """,
        "CREATE INDEX versions_by_hash ON versions (namespace, hash)",
        # What the index in memory holds of each note, in one narrow table that is read as a whole.
        # No vector: to be made. An empty one: the note is purged.
        """
        CREATE TABLE points (
            number INTEGER PRIMARY KEY,
            namespace INTEGER NOT NULL,
            changed INTEGER NOT NULL,
            is_live INTEGER NOT NULL,
            thread INTEGER,
            position INTEGER,
            created REAL NOT NULL,
            quality REAL NOT NULL,
            length INTEGER NOT NULL,
            vector BLOB
        )
        """,
        "CREATE INDEX points_by_namespace ON points (namespace)",
        "CREATE INDEX points_by_change ON points (namespace, changed)",
        "CREATE INDEX points_unembedded ON points (number) WHERE vector IS NULL",
    ),
)


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
