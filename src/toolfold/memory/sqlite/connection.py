"""A SQLite file as the stores of memory see it, with FTS5 as the index of words."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from toolfold.memory.graph.encoding import MatchField
from toolfold.memory.graph.models import has_halves, writable
from toolfold.memory.sql.connection import (
    PartTexts,
    SqlCondition,
    SqlConnection,
    Stored,
    index_text,
    index_words,
    query_grams,
)
from toolfold.memory.sqlite.steps import EVENTS_STAY, SCHEMA, vocabulary_table, words_table
from toolfold.storage.database import TOKENIZER, Connection, Cursor, Database

# The indexes of a knowledge graph: its words, and every three characters that stand in a row.
#
# Each graph has its own, so that searching one costs nothing for what others hold.


class FtsGraphIndex:
    """Implements `GraphIndex`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, graph: int) -> None:
        # Without content: the texts are there already.
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {graph_words_table(graph)} USING fts5(name, type, observation, "
            f"content = '', columnsize = 0, tokenize = '{TOKENIZER}')"
        )
        # Which part has which grams is enough: whatever they find is looked at again.
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {grams_table(graph)} USING fts5(text, content = '', "
            "columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1')"
        )

    def add(self, graph: int, number: int, texts: PartTexts) -> None:
        self._connection.execute(
            f"INSERT INTO {graph_words_table(graph)} (rowid, name, type, observation) "
            "VALUES (?, ?, ?, ?)",
            (number, *index_words(texts)),
        )
        self._connection.execute(
            f"INSERT INTO {grams_table(graph)} (rowid, text) VALUES (?, ?)",
            (number, index_text(texts)),
        )

    def remove(self, graph: int, number: int, texts: PartTexts) -> None:
        words, grams = graph_words_table(graph), grams_table(graph)
        self._connection.execute(
            f"INSERT INTO {words} ({words}, rowid, name, type, observation) "
            "VALUES ('delete', ?, ?, ?, ?)",
            (number, *index_words(texts)),
        )
        self._connection.execute(
            f"INSERT INTO {grams} ({grams}, rowid, text) VALUES ('delete', ?, ?)",
            (number, index_text(texts)),
        )

    def containing(self, graph: int, query: str) -> SqlCondition:
        sought = query_grams(query)
        if not sought:
            return SqlCondition("graph = ?", (graph,))
        grams = grams_table(graph)
        return SqlCondition(
            f"number IN (SELECT rowid FROM {grams} WHERE {grams} MATCH ?)",
            (" AND ".join(map(_quoted, sought)),),
        )

    def with_word(self, graph: int, word: str, place: MatchField) -> SqlCondition:
        words = graph_words_table(graph)
        return SqlCondition(
            f"number IN (SELECT rowid FROM {words} WHERE {words} MATCH ?)",
            (f"{place} : {_quoted(writable(word))}",),
        )


def graph_words_table(graph: int) -> str:
    """Return the name of the table of words of a graph."""
    return f"graph_words_{graph:d}"


def grams_table(graph: int) -> str:
    """Return the name of the table of grams of a graph."""
    return f"graph_grams_{graph:d}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


class SqliteConnection:
    """Implements `SqlConnection` over one connection, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.words = FtsWords(connection)
        self.parts = FtsGraphIndex(connection)

    def execute(self, sql: str, values: Sequence[object] = (), /) -> Cursor:
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> object:
        return self._connection.executemany(sql, rows)

    def stream(self, sql: str) -> Cursor:
        return self._connection.execute(sql)

    def go_on_after_highest(self, _table: str, _column: str) -> None:
        """SQLite does so by itself."""

    def written(self) -> int:
        return self._connection.total_changes

    def next_change(self) -> int:
        self._connection.execute("UPDATE state SET changed = changed + 1")
        [changed] = self._connection.execute("SELECT changed FROM state").fetchone()
        found: int = changed
        return found

    def next_part(self) -> int:
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'graph_parts'"
        ).fetchone()
        return 1 if row is None else row[0] + 1

    def stored(self, text: str) -> Stored:
        if "\0" in text or has_halves(text):
            return text.encode("utf-8", "surrogatepass")
        return text

    def clear(self) -> None:
        indexes = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
        ).fetchall()
        self._connection.execute("DROP TRIGGER events_are_not_deleted")
        for (index,) in sorted(indexes, reverse=True):  # those of vocabulary lean on others
            self._connection.execute(f"DROP TABLE {index}")
        tables = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        for (table,) in tables:
            if table != "state":
                self._connection.execute(f"DELETE FROM {table}")
        self._connection.execute(EVENTS_STAY)

    def finish_copy(self) -> None:
        # Numbers of purged notes are not used again, and stand in this table alone.
        self._connection.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, (SELECT coalesce(max(number), 0) "
            "FROM points)) WHERE name = 'notes'"
        )


class FtsWords:
    """Implements `NoteWordIndex`.

    Each namespace has its own, because scores depend on how often a word occurs in all of them.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, namespace: int) -> None:
        # Without content: the notes hold it already.
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {words_table(namespace)} "
            f"USING fts5(content, content = '', tokenize = '{TOKENIZER}')"
        )
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {vocabulary_table(namespace)} "
            f"USING fts5vocab('{words_table(namespace)}', 'instance')"
        )

    def add(self, namespace: int, number: int, content: str) -> int:
        words = words_table(namespace)
        self._connection.execute(
            f"INSERT INTO {words} (rowid, content) VALUES (?, ?)", (number, content)
        )
        return self._length(words, number)

    def remove(self, namespace: int, number: int, content: str) -> None:
        words = words_table(namespace)
        self._connection.execute(
            f"INSERT INTO {words} ({words}, rowid, content) VALUES ('delete', ?, ?)",
            (number, content),
        )

    def erase(self, namespace: int) -> None:
        # Until segments are merged, the words of a deleted note stay in the old ones.
        words = words_table(namespace)
        self._connection.execute(f"INSERT INTO {words}({words}) VALUES('optimize')")

    def _length(self, words: str, number: int) -> int:
        """Return how many words FTS5 counted: it keeps that as a variable-length integer."""
        [size] = self._connection.execute(
            f"SELECT sz FROM {words}_docsize WHERE id = ?", (number,)
        ).fetchone()
        length = 0
        for byte in size:
            length = length << 7 | byte & 0x7F
        return length


_T = TypeVar("_T")

_READERS: Final = 4


class SqliteFile:
    """One file that all stores of a process use; other processes may, at the same time.

    A commit waits for the disk, and for other processes, so nothing here blocks the event loop.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, SCHEMA)
        self._reading = anyio.CapacityLimiter(_READERS)
        self._writing = anyio.CapacityLimiter(1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the file open for the length of this context.

        Raises:
            StoreError: It cannot be opened.
        """
        await anyio.to_thread.run_sync(self._database.open)
        try:
            yield
        finally:
            self._database.close()

    async def read(self, work: Callable[[SqlConnection], _T]) -> _T:
        """Do `work` on the database as it is at one moment.

        Raises:
            StoreError: It does not answer.
        """
        return await anyio.to_thread.run_sync(
            self._database.read, _as_memory(work), limiter=self._reading
        )

    async def write(self, work: Callable[[SqlConnection], _T], _namespace: str | None = None) -> _T:
        """Do `work` wholly or not at all. What it wrote is on the disk when this returns.

        Raises:
            StoreError: The database does not take it; nothing has changed.
        """
        return await anyio.to_thread.run_sync(
            self._database.write, _as_memory(work), limiter=self._writing
        )

    async def erase(self) -> None:
        """Put the log of changes into the file, and cut it to nothing.

        Raises:
            StoreError: A process that reads stood in the way for too long.
        """
        await anyio.to_thread.run_sync(self._database.empty_log, limiter=self._writing)


def _as_memory(work: Callable[[SqlConnection], _T]) -> Callable[[Connection], _T]:
    return lambda connection: work(SqliteConnection(connection))
