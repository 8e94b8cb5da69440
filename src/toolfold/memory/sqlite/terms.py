"""The words of a query as FTS5 has them in its index, and where they occur."""

import sqlite3
from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from toolfold.memory.sqlite.schema import TOKENIZER, vocabulary_table


class Stemmer:
    """Asks FTS5 itself, so that a word becomes the same term here and in the notes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.execute(
            f"CREATE VIRTUAL TABLE query USING fts5(words, content = '', tokenize = '{TOKENIZER}')"
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab('query', 'row')")

    def terms(self, words: Sequence[str]) -> list[str]:
        """Return the terms of these words, each once."""
        with self._lock:
            self._connection.execute("INSERT INTO query (query) VALUES ('delete-all')")
            self._connection.execute("INSERT INTO query (words) VALUES (?)", (" ".join(words),))
            return [term for (term,) in self._connection.execute("SELECT term FROM terms")]


def occurrences(
    connection: sqlite3.Connection, namespace: int, terms: Sequence[str]
) -> dict[str, NDArray[np.int64]]:
    """Return for each term the notes that have it, ascending, as often as they have it.

    Scores made from this are those of FTS5's own `bm25`, at a tenth of its price: that looks up the
    length of each note in a table.
    """
    # One long text is several times quicker than a row for each occurrence.
    statement = f"SELECT group_concat(doc) FROM {vocabulary_table(namespace)} WHERE term = ?"
    found = {}
    for term in terms:
        [numbers] = connection.execute(statement, (term,)).fetchone()
        found[term] = np.sort(np.fromstring(numbers or "", np.int64, sep=","))
    return found
