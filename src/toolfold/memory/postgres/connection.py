"""PostgreSQL as the stores of memory see it, with arrays as indexes of words."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

import anyio
import anyio.to_thread

from toolfold.embedding import dequantize
from toolfold.memory.graph.encoding import MatchField
from toolfold.memory.graph.models import writable
from toolfold.memory.postgres.schema import SCHEMA
from toolfold.memory.sql.connection import (
    GRAM,
    PartTexts,
    SqlCondition,
    SqlConnection,
    Stored,
    index_text,
    index_words,
    query_grams,
)
from toolfold.storage.database import Tokenizer
from toolfold.storage.postgres import MAX_CONNECTIONS, PostgresDatabase, PostgresTransaction
from toolfold.storage.tables import SqlCursor


class _Statements(Protocol):
    def execute(self, sql: str, values: Sequence[object] = (), /) -> object: ...


def vector_text(row: Sequence[float]) -> str:
    """Return a vector as pgvector reads it."""
    return f"[{','.join(f'{number:.6g}' for number in row)}]"


def vector_texts(blobs: Sequence[bytes], dimensions: int) -> list[str]:
    """Return vectors as pgvector reads them."""
    return [vector_text(row.tolist()) for row in dequantize(blobs, dimensions=dimensions)]


def index_meaning(connection: _Statements, dimensions: int) -> None:
    """Make the index for vectors of so many dimensions, in the place of any other."""
    connection.execute("DROP INDEX IF EXISTS points_by_meaning")
    # The condition keeps out what was dropped just now, but others may see for a moment yet.
    connection.execute(
        "CREATE INDEX points_by_meaning ON points USING hnsw "
        f"(CAST(meaning AS halfvec({dimensions:d})) halfvec_ip_ops) "
        f"WHERE vector_dims(meaning) = {dimensions:d}"
    )


_MAX_TERM_CHARS: Final = 200
_AT_ONCE: Final = 500

_FILLED: Final = ("namespaces", "graphs", "points")  # and what refers to them
_NUMBERED: Final = {
    **dict.fromkeys(("namespaces", "threads", "graphs", "consolidation_changes"), "id"),
    **dict.fromkeys(("notes", "graph_relations", "events", "consolidations"), "number"),
}


class PostgresConnection:
    """Implements `SqlConnection` over one transaction."""

    def __init__(self, transaction: PostgresTransaction) -> None:
        self._transaction = transaction
        self.words = ArrayWords(transaction)
        self.parts = ArrayGraphIndex(transaction)

    def execute(self, sql: str, values: Sequence[object] = (), /) -> SqlCursor:
        found: SqlCursor = self._transaction.execute(sql, values)
        return found

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> None:
        self._transaction.executemany(sql, rows)

    def stream(self, sql: str) -> Iterable[Any]:
        return self._transaction.stream(sql)

    def go_on_after_highest(self, table: str, column: str) -> None:
        self._transaction.go_on_after_highest(table, column)

    def written(self) -> int:
        return self._transaction.written()

    def next_change(self) -> int:
        return 0  # nothing in memory follows the tables, and to count would be to wait

    def next_part(self) -> int:
        [(number,)] = self._transaction.execute("SELECT nextval('graph_part_numbers')").fetchall()
        found: int = number
        return found

    def stored(self, text: str) -> Stored:
        return text.encode("utf-8", "surrogatepass")

    def clear(self) -> None:
        self._transaction.execute(f"TRUNCATE {', '.join(_FILLED)} RESTART IDENTITY CASCADE")

    def finish_copy(self) -> None:
        for table, column in _NUMBERED.items():
            self.go_on_after_highest(table, column)
        # Numbers of purged notes are not used again, and stand in this table alone.
        self._transaction.execute(
            "SELECT setval(pg_get_serial_sequence('notes', 'number'), number) "
            "FROM (SELECT max(number) AS number FROM points) AS last WHERE number > 0"
        )
        self._transaction.execute(
            "SELECT setval('graph_part_numbers', number) "
            "FROM (SELECT max(number) AS number FROM graph_parts) AS last WHERE number > 0"
        )
        [(dimensions,)] = self._transaction.execute("SELECT dimensions FROM state").fetchall()
        if dimensions:
            self._fill_meaning(dimensions)
            index_meaning(self._transaction, dimensions)

    def _fill_meaning(self, dimensions: int) -> None:
        rows = iter(
            self._transaction.stream("SELECT number, vector FROM points WHERE length(vector) > 0")
        )
        while some := list(islice(rows, _AT_ONCE)):
            texts = vector_texts([vector for _, vector in some], dimensions)
            self._transaction.executemany(
                "UPDATE points SET meaning = CAST(? AS halfvec) WHERE number = ?",
                [(text, number) for text, (number, _) in zip(texts, some, strict=True)],
            )


class ArrayWords:
    """Implements `NoteWordIndex`; its terms are those of SQLite's index, so scores are the same."""

    def __init__(self, transaction: PostgresTransaction) -> None:
        self._transaction = transaction

    def begin(self, namespace: int) -> None:
        """All namespaces share one index."""

    def add(self, namespace: int, number: int, content: str) -> int:
        terms = in_scope(namespace, tokenizer().tokens(content))
        self._transaction.execute(
            "INSERT INTO note_words VALUES (?, ?, ?, ?)", (number, namespace, len(terms), terms)
        )
        self._count(namespace, len(terms))
        return len(terms)

    def remove(self, namespace: int, number: int, _content: str) -> None:
        gone = self._transaction.execute(
            "DELETE FROM note_words WHERE number = ? RETURNING length", (number,)
        ).fetchone()
        if gone is not None:
            self._count(namespace, -gone[0])

    def erase(self, namespace: int) -> None:
        """What is gone from the table is gone from its index when the table is cleaned up."""

    def _count(self, namespace: int, words: int) -> None:
        self._transaction.execute(
            "UPDATE namespaces SET words = words + ? WHERE id = ?", (words, namespace)
        )


class ArrayGraphIndex:
    """Implements `GraphIndex`."""

    def __init__(self, transaction: PostgresTransaction) -> None:
        self._transaction = transaction

    def begin(self, graph: int) -> None:
        """All graphs share one index."""

    def add(self, graph: int, number: int, texts: PartTexts) -> None:
        words = [in_scope(graph, tokenizer().tokens(text)) for text in index_words(texts)]
        self._transaction.execute(
            "INSERT INTO graph_texts VALUES (?, ?, ?, ?, ?)",
            (number, *words, in_scope(graph, _grams(index_text(texts)))),
        )

    def remove(self, _graph: int, number: int, _texts: PartTexts) -> None:
        self._transaction.execute("DELETE FROM graph_texts WHERE number = ?", (number,))

    def containing(self, graph: int, query: str) -> SqlCondition:
        sought = query_grams(query)
        if not sought:
            return SqlCondition("graph = ?", (graph,))
        return SqlCondition(
            "number IN (SELECT number FROM graph_texts WHERE grams @> ?::text[])",
            (in_scope(graph, sought),),
        )

    def with_word(self, graph: int, word: str, place: MatchField) -> SqlCondition:
        terms = in_scope(graph, tokenizer().tokens(writable(word)))
        if not terms:
            return SqlCondition("FALSE", ())
        # A word may have several terms: they must follow each other.
        return SqlCondition(
            f"number IN (SELECT number FROM graph_texts WHERE {place} @> ?::text[] "
            f"AND strpos(' ' || array_to_string({place}, ' ') || ' ', ?) > 0)",
            (terms, f" {' '.join(terms)} "),
        )


@cache
def tokenizer() -> Tokenizer:
    """Return the one that all use."""
    return Tokenizer()


def in_scope(number: int, terms: Iterable[str]) -> list[str]:
    """Return terms as the index holds them for one namespace or graph; it takes no long ones."""
    return [f"{number:d}:{term[:_MAX_TERM_CHARS]}" for term in terms]


def _grams(text: str) -> list[str]:
    return sorted({text[start : start + GRAM] for start in range(len(text) - GRAM + 1)})


_T = TypeVar("_T")

_PURGED: Final = ("notes", "versions", "links", "tags", "points", "note_words", "threads")


class PostgresMemory:
    """One database that all stores of any number of processes use at the same time."""

    def __init__(self, url: str) -> None:
        self._database = PostgresDatabase(url, SCHEMA)
        self._working = anyio.CapacityLimiter(MAX_CONNECTIONS)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep connections open for the length of this context.

        Raises:
            StoreError: The database cannot be opened.
        """
        await anyio.to_thread.run_sync(self._database.open)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._database.close)

    async def read(self, work: Callable[[SqlConnection], _T]) -> _T:
        """See `SqlDatabase.read`."""
        return await anyio.to_thread.run_sync(
            self._database.read, _as_memory(work), limiter=self._working
        )

    async def write(self, work: Callable[[SqlConnection], _T], namespace: str | None = None) -> _T:
        """See `SqlDatabase.write`."""
        return await anyio.to_thread.run_sync(
            self._database.write, _as_memory(work), namespace, limiter=self._working
        )

    async def erase(self) -> None:
        """See `SqlDatabase.erase`. Backups and the server's own log are the administrator's."""
        await anyio.to_thread.run_sync(self._database.vacuum, _PURGED, limiter=self._working)


def _as_memory(work: Callable[[SqlConnection], _T]) -> Callable[[PostgresTransaction], _T]:
    return lambda transaction: work(PostgresConnection(transaction))
