"""The indexes of a knowledge graph: its words, and every three characters that stand in a row.

Each graph has its own, so that searching one costs nothing for what others hold.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from toolfold.memory.graph.store import MatchField
from toolfold.memory.graph.text_match import has_halves, writable
from toolfold.memory.sqlite.schema import TOKENIZER

_GRAM: Final = 3
_MAX_GRAMS: Final = 24


def make_indexes(connection: sqlite3.Connection, graph: int) -> None:
    """Make the indexes of a graph, without content: the texts are there already."""
    connection.execute(
        f"CREATE VIRTUAL TABLE {words_table(graph)} USING fts5(name, type, observation, "
        f"content = '', columnsize = 0, tokenize = '{TOKENIZER}')"
    )
    # Which part has which grams is enough: whatever they find is looked at again.
    connection.execute(
        f"CREATE VIRTUAL TABLE {grams_table(graph)} USING fts5(text, content = '', "
        "columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1')"
    )


class Indexer:
    """Keeps the indexes of one graph, within one transaction."""

    def __init__(self, connection: sqlite3.Connection, graph: int) -> None:
        self._connection = connection
        self._words = words_table(graph)
        self._grams = grams_table(graph)

    def add(self, number: int, name: str, kind: str, observations: Sequence[str]) -> None:
        """Have a part found."""
        self._connection.execute(
            f"INSERT INTO {self._words} (rowid, name, type, observation) VALUES (?, ?, ?, ?)",
            (number, *_words(name, kind, observations)),
        )
        self._connection.execute(
            f"INSERT INTO {self._grams} (rowid, text) VALUES (?, ?)",
            (number, _grams(name, kind, observations)),
        )

    def remove(self, number: int, name: str, kind: str, observations: Sequence[str]) -> None:
        """Have a part found no more; it must be told as it was added."""
        self._connection.execute(
            f"INSERT INTO {self._words} ({self._words}, rowid, name, type, observation) "
            "VALUES ('delete', ?, ?, ?, ?)",
            (number, *_words(name, kind, observations)),
        )
        self._connection.execute(
            f"INSERT INTO {self._grams} ({self._grams}, rowid, text) VALUES ('delete', ?, ?)",
            (number, _grams(name, kind, observations)),
        )


def grams_expression(query: str) -> str | None:
    """Return the FTS5 query for parts that may contain `query`: all that do are among them.

    None if grams cannot tell: of too short a query, and of one with halves of surrogate pairs,
    which JavaScript finds in whole ones.
    """
    needle = query.lower()
    if len(needle) < _GRAM or has_halves(needle):
        return None
    needle = writable(needle)
    starts = range(0, len(needle) - _GRAM + 1, 1 + (len(needle) - _GRAM) // _MAX_GRAMS)
    grams = dict.fromkeys(needle[start : start + _GRAM] for start in starts)
    return " AND ".join(map(_quoted, grams))


def word_expression(word: str, place: MatchField) -> str:
    """Return the FTS5 query for parts with a word in one place."""
    return f"{place} : {_quoted(writable(word))}"


def words_table(graph: int) -> str:
    """Return the name of the table of words of a graph."""
    return f"graph_words_{graph:d}"


def grams_table(graph: int) -> str:
    """Return the name of the table of grams of a graph."""
    return f"graph_grams_{graph:d}"


def _words(name: str, kind: str, observations: Sequence[str]) -> tuple[str, str, str]:
    return writable(name), writable(kind), writable("\n".join(observations))


def _grams(name: str, kind: str, observations: Sequence[str]) -> str:
    # Each by itself: what a sigma becomes depends on what stands beside it.
    return writable("\n".join(text.lower() for text in (name, kind, *observations)))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
