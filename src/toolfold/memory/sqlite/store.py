"""Keep notes in a SQLite file; find them by FTS5, or by arrays in memory that follow it."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import anyio

from toolfold.errors import StoreError
from toolfold.memory.models import Note
from toolfold.memory.ranking.rank import WORDS, WORDS_NEARBY, match_expression
from toolfold.memory.sql.connection import SqlConnection, condition
from toolfold.memory.sql.rows import namespace_id, read_live, read_superseded
from toolfold.memory.sql.store import NOTHING, SqlStore, read_state
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.steps import words_table
from toolfold.memory.store import EVERYTHING, Filter, Matches, Query, Scored, in_background

# numpy costs 0.1 s to import; a first search by words does without.
if TYPE_CHECKING:
    from toolfold.memory.sqlite.matcher import Matcher


def match_words(connection: SqlConnection, namespace: int, query: Query, *, depth: int) -> Matches:
    """Return what matches by its own words; what stands beside it does not count."""
    expression = match_expression(query.text)
    if expression is None:
        return NOTHING
    hits, values = _hits(namespace, query.wanted)
    # Only of the best are more columns read.
    found = connection.execute(
        f"SELECT number, score, created, quality FROM ({hits} ORDER BY score DESC, number DESC "
        "LIMIT ?) JOIN points USING (number) ORDER BY score DESC, number DESC",
        (expression, *values, depth),
    ).fetchall()
    scored: list[Scored] = [(number, score) for number, score, _, _ in found]
    return Matches(
        lists={WORDS: scored, WORDS_NEARBY: scored},
        created={number: created for number, _, created, _ in found},
        quality={number: quality for number, _, _, quality in found},
        total=_count(connection, namespace, expression, query.wanted),
    )


def _count(connection: SqlConnection, namespace: int, expression: str, wanted: Filter) -> int:
    hits, values = _hits(namespace, wanted, column="count(*)")
    [total] = connection.execute(hits, (expression, *values)).fetchone()
    counted: int = total
    return counted


def _hits(namespace: int, wanted: Filter, *, column: str = "") -> tuple[str, tuple[object, ...]]:
    """Return a query for the numbers and scores of matches, and its values after the expression."""
    words = words_table(namespace)
    column = column or f"{words}.rowid AS number, -bm25({words}) AS score"
    if wanted == EVERYTHING:  # the index of words holds what is not deleted, and nothing else
        return f"SELECT {column} FROM {words} WHERE {words} MATCH ?", ()
    meets = condition(namespace, wanted)
    joined = f"{words} JOIN notes ON notes.number = {words}.rowid"
    return f"SELECT {column} FROM {joined} WHERE {words} MATCH ? AND {meets.sql}", meets.values


_T = TypeVar("_T")

_log = logging.getLogger(__name__)


class SqliteStore(SqlStore):
    """Implements `Store` over one file, which is to be running as long as this is."""

    backend = "sqlite"

    def __init__(self, file: SqliteFile, *, patience_s: float = 0.0) -> None:
        """A search by meaning waits up to `patience_s` for what it needs to be in memory."""
        super().__init__(file)
        self._patience_s = patience_s
        self._matcher: Matcher | None = None
        self._cold: dict[str, anyio.Event] = {}
        self._news = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load in the background what search by meaning needs, for the length of this context."""
        async with in_background(self._keep_warm):
            yield

    async def search(self, namespace: str, query: Query, *, depth: int) -> Matches:
        def work(connection: SqlConnection) -> Matches:
            return self._match(connection, namespace, query, depth=depth)

        return await self._read_warm(namespace, query, work)

    async def find(
        self,
        namespace: str,
        query: Query,
        choose: Callable[[Matches], Sequence[int]],
        *,
        depth: int,
    ) -> dict[int, Note]:
        def work(connection: SqlConnection) -> dict[int, Note]:
            matches = self._match(connection, namespace, query, depth=depth)
            return read_live(connection, namespace, choose(matches))

        return await self._read_warm(namespace, query, work)

    def _match(
        self, connection: SqlConnection, namespace: str, query: Query, *, depth: int
    ) -> Matches:
        known = namespace_id(connection, namespace)
        if known is None:
            return NOTHING
        matches = None
        if query.vector is not None and self._matcher is not None:
            state = read_state(connection, expected=self._embedder)
            matches = self._matcher.match(connection, known, state, query, depth=depth)
        if matches is None:
            self._cold.setdefault(namespace, anyio.Event())
            matches = match_words(connection, known, query, depth=depth)
        found = read_superseded(connection, list(matches.created))
        return replace(matches, superseded=found) if found else matches

    async def _read_warm(
        self, namespace: str, query: Query, work: Callable[[SqlConnection], _T]
    ) -> _T:
        """Do `work`; where vectors are not in memory yet, once more if they soon are."""
        found = await self._database.read(work)
        if (warmed := self._cold.get(namespace)) is None:
            return found
        self._news.set()
        if query.vector is None:
            return found
        with anyio.move_on_after(self._patience_s):
            await warmed.wait()
            return await self._database.read(work)
        return found

    async def warm(self, namespace: str) -> None:
        await self._database.read(lambda connection: self._load(connection, namespace))

    def warm_soon(self, namespace: str) -> None:
        self._cold.setdefault(namespace, anyio.Event())
        self._news.set()

    async def _keep_warm(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            for namespace, warmed in list(self._cold.items()):
                try:
                    await self.warm(namespace)
                except StoreError as error:
                    _log.warning("Notes are searched by words alone: %s", error)
                del self._cold[namespace]
                warmed.set()

    def _load(self, connection: SqlConnection, namespace: str) -> None:
        from toolfold.memory.sqlite.matcher import Matcher

        matcher = self._matcher or Matcher()
        known = namespace_id(connection, namespace)
        state = read_state(connection, expected=self._embedder)
        if known is not None and not matcher.is_loaded(known):
            matcher.load(connection, known, state)
        self._matcher = matcher

    def _is_warm(self, namespace: int) -> bool:
        return self._matcher is not None and self._matcher.is_loaded(namespace)
