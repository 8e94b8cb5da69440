"""The tables of a SQLite store, as numbered steps from an empty file to the present."""

import sqlite3
from typing import Final

from toolfold.memory.sqlite.steps import CONSOLIDATION, DOCUMENTS, EVENTS, GRAPH, NOTES
from toolfold.storage.migrations import DatabaseSchema

TOKENIZER: Final = "porter unicode61"

# Each step brings a database of the version that is its index to the next.
SCHEMA: Final = DatabaseSchema(
    "the memory",
    0x746F6C6D,
    (NOTES, GRAPH, EVENTS, CONSOLIDATION, DOCUMENTS),
)


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
