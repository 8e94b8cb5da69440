"""The indexes of a knowledge graph: its words, and every three characters that stand in a row.

Each graph has its own, so that searching one costs nothing for what others hold.
"""

import sqlite3
from typing import Final

from toolfold.memory.graph.matching import has_halves, writable
from toolfold.memory.sqlite.schema import TOKENIZER

_GRAM: Final = 3
_MAX_GRAMS: Final = 24


def make_indexes(connection: sqlite3.Connection, graph: int) -> None:
    """Make the indexes of a graph, without content: the texts are there already."""
    connection.execute(
        f"CREATE VIRTUAL TABLE {words_table(graph)} USING "
        f"fts5(text, content = '', columnsize = 0, tokenize = '{TOKENIZER}')"
    )
    # Which text has which grams is enough: whatever they find is looked at again.
    connection.execute(
        f"CREATE VIRTUAL TABLE {grams_table(graph)} USING fts5(text, content = '', "
        "columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1')"
    )


def index(connection: sqlite3.Connection, graph: int, number: int, text: str) -> None:
    """Have a text found."""
    for table, indexed in _indexed(graph, text):
        connection.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (number, indexed))


def unindex(connection: sqlite3.Connection, graph: int, number: int, text: str) -> None:
    """Have a text found no more."""
    for table, indexed in _indexed(graph, text):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (number, indexed)
        )


def grams_expression(query: str) -> str | None:
    """Return the FTS5 query for texts that may contain `query`: all that do are among them.

    None if grams cannot tell: of too short a query, and of one with halves of surrogate pairs,
    which JavaScript finds in whole ones.
    """
    needle = query.lower()
    if len(needle) < _GRAM or has_halves(needle):
        return None
    needle = writable(needle)
    starts = range(0, len(needle) - _GRAM + 1, 1 + (len(needle) - _GRAM) // _MAX_GRAMS)
    grams = dict.fromkeys(needle[start : start + _GRAM] for start in starts)
    return " AND ".join('"' + gram.replace('"', '""') + '"' for gram in grams)


def words_table(graph: int) -> str:
    """Return the name of the table of words of a graph."""
    return f"graph_words_{graph:d}"


def grams_table(graph: int) -> str:
    """Return the name of the table of grams of a graph."""
    return f"graph_grams_{graph:d}"


def _indexed(graph: int, text: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (words_table(graph), writable(text)), (grams_table(graph), writable(text.lower()))
