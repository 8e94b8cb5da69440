"""Keep notes in PostgreSQL, and find them by what it says is near."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from toolfold.memory.models import Note
from toolfold.memory.postgres.connection import (
    PostgresMemory,
    in_scope,
    index_meaning,
    tokenizer,
    vector_text,
    vector_texts,
)
from toolfold.memory.ranking.index import (
    LENGTH_PENALTY,
    SATURATION,
    WEIGHTS,
    Index,
    Mask,
    Point,
    Postings,
    as_matches,
    rarity,
)
from toolfold.memory.ranking.rank import WORDS, WORDS_NEARBY, telling_words
from toolfold.memory.sql.connection import SqlCondition, SqlConnection, condition
from toolfold.memory.sql.rows import namespace_id, read_live, read_superseded
from toolfold.memory.sql.store import NOTHING, SqlStore, adopt, made_by, read_state
from toolfold.memory.store import EVERYTHING, Embedded, Filter, Matches, Query

# Find notes in PostgreSQL: it names candidates, and the ranking of all stores weighs them.
#
# The best by words, by an index of arrays, and the nearest by meaning, by pgvector's HNSW, come
# with what stands beside them in their conversation or document. Scores are those that SQLite's
# store computes, with the same counts over the whole namespace; only what is no candidate is not
# weighed. A small namespace is weighed as a whole, and so is any if all matches are asked for.

FEW: Final = 256
"""Up to so many notes are weighed as a whole."""

_MOST: Final = 1_000
"""The most that HNSW is asked for at once."""

_NEARBY: Final = len(WEIGHTS)

_BEST_BY_WORDS: Final = f"""
    SELECT number, sum(
        sought.rarity * found.times * {SATURATION + 1}
        / (found.times + {SATURATION} * ({1 - LENGTH_PENALTY} + {LENGTH_PENALTY} * length / ?))
    ) AS score
    FROM unnest(?::text[], ?::float8[]) AS sought (term, rarity)
    JOIN note_words ON terms @> ARRAY[sought.term]
    CROSS JOIN LATERAL (SELECT cardinality(array_positions(terms, sought.term)) AS times) AS found
"""
_HAVING: Final = """
    SELECT sought.term, (SELECT count(*) FROM note_words WHERE terms @> ARRAY[sought.term])
    FROM unnest(?::text[]) AS sought (term)
"""
_TIMES: Final = """
    SELECT sought.term, number, cardinality(array_positions(terms, sought.term))
    FROM unnest(?::text[]) AS sought (term) JOIN note_words ON terms @> ARRAY[sought.term]
"""
# Twice as far as neighbours count, so that those of a neighbour are there too.
_BESIDE: Final = f"""
    SELECT beside.number, min(beside.step) FROM points AS seed CROSS JOIN LATERAL (
        (SELECT number, row_number() OVER (ORDER BY coalesce(position, 0), number) - 1 AS step
        FROM points WHERE thread = seed.thread AND is_live = 1
            AND (coalesce(position, 0), number) >= (coalesce(seed.position, 0), seed.number)
        ORDER BY coalesce(position, 0), number LIMIT {2 * _NEARBY + 1})
        UNION ALL
        (SELECT number, row_number() OVER (ORDER BY coalesce(position, 0) DESC, number DESC) - 1
        FROM points WHERE thread = seed.thread AND is_live = 1
            AND (coalesce(position, 0), number) <= (coalesce(seed.position, 0), seed.number)
        ORDER BY coalesce(position, 0) DESC, number DESC LIMIT {2 * _NEARBY + 1})
    ) AS beside
    WHERE seed.number = ANY(?::bigint[]) AND seed.thread IS NOT NULL GROUP BY beside.number
"""
_POINTS: Final = """
    SELECT number, is_live, thread, position, created, quality, length, vector FROM points
    WHERE is_live = 1 AND
"""


class _Sought(NamedTuple):
    """The terms of a query as the index has them, what each is worth, and the mean length."""

    rarities: Mapping[str, float]
    mean_words: float
    notes: int

    @property
    def terms(self) -> list[str]:
        return list(self.rarities)


class _Pool(NamedTuple):
    """The notes that are weighed, and those among them that may be found."""

    loaded: Sequence[int] | None
    """None for all of the namespace."""

    eligible: Sequence[int]


def match_words(connection: SqlConnection, namespace: int, query: Query, *, depth: int) -> Matches:
    """Return what matches by its own words; what stands beside it does not count."""
    sought = _sought(connection, namespace, query.text)
    if not sought.rarities:
        return NOTHING
    best = _best_by_words(connection, namespace, sought, query.wanted, depth)
    rows = connection.execute(
        "SELECT number, created, quality FROM points WHERE number = ANY(?::bigint[])",
        ([number for number, _ in best],),
    ).fetchall()
    meets = condition(namespace, query.wanted)
    [total] = connection.execute(
        "SELECT count(*) FROM note_words JOIN notes USING (number) "
        f"WHERE terms && ?::text[] AND {meets.sql}",
        (sought.terms, *meets.values),
    ).fetchone()
    return Matches(
        lists={WORDS: best, WORDS_NEARBY: best},
        created={number: created for number, created, _ in rows},
        quality={number: quality for number, _, quality in rows},
        total=total,
    )


def match_all(
    connection: SqlConnection, namespace: int, query: Query, *, dimensions: int, depth: int
) -> Matches:
    """Return what matches by words and by meaning, and by what stands beside it."""
    assert query.vector is not None  # noqa: S101  # or it would be `match_words`
    vector = np.array(query.vector(), np.float32)
    sought = _sought(connection, namespace, query.text)
    pool = _Pool(None, ())
    if sought.notes > FEW and depth <= _MOST:
        seeds = _seeds(
            connection, namespace, sought, vector_text(vector.tolist()), query.wanted, depth
        )
        pool = _around(connection, seeds)
    index = _index(connection, namespace, pool, dimensions)
    scores = index.score_words(_postings(connection, index, sought, pool))
    among = _among(connection, namespace, index, pool, query.wanted)
    return as_matches(index, index.match(scores, vector, among, depth=depth))


def _sought(connection: SqlConnection, namespace: int, text: str) -> _Sought:
    notes, words = connection.execute(
        "SELECT notes, words FROM namespaces WHERE id = ?", (namespace,)
    ).fetchone()
    terms = in_scope(namespace, tokenizer().terms(telling_words(text)))
    having = connection.execute(_HAVING, (terms,)).fetchall() if terms else []
    rarities = {term: rarity(notes, count) for term, count in having if count}
    return _Sought(rarities, words / notes if words else 1.0, notes)


def _best_by_words(
    connection: SqlConnection, namespace: int, sought: _Sought, wanted: Filter, limit: int
) -> list[tuple[int, float]]:
    meets = _joined(namespace, wanted)
    rows = connection.execute(
        f"{_BEST_BY_WORDS} {meets.sql} GROUP BY number ORDER BY score DESC, number DESC LIMIT ?",
        (
            *(sought.mean_words, sought.terms, list(sought.rarities.values())),
            *(*meets.values, limit),
        ),
    )
    return [(number, float(score)) for number, score in rows]


def _joined(namespace: int, wanted: Filter) -> SqlCondition:
    """Return what follows the tables in a statement that is to find what passes a filter."""
    if wanted == EVERYTHING:
        return SqlCondition("", ())
    meets = condition(namespace, wanted)
    return SqlCondition(f"JOIN notes USING (number) WHERE {meets.sql}", meets.values)


def _nearest(
    connection: SqlConnection, namespace: int, vector: str, wanted: Filter, limit: int
) -> list[int]:
    """Return the nearest by meaning; pgvector goes on where a filter leaves too few."""
    connection.execute(f"SET LOCAL hnsw.ef_search = {min(limit, _MOST):d}")
    connection.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
    dimensions = vector.count(",") + 1
    kind = f"halfvec({dimensions:d})"
    joined, also = "", ""
    values: tuple[object, ...] = ()
    if wanted != EVERYTHING:
        meets = condition(namespace, wanted)
        joined, also, values = "JOIN notes USING (number)", f"AND {meets.sql}", meets.values
    rows = connection.execute(
        f"SELECT number FROM points {joined} WHERE points.namespace = ? AND is_live = 1 "
        f"AND vector_dims(meaning) = {dimensions:d} {also} "
        f"ORDER BY CAST(meaning AS {kind}) <#> CAST(? AS {kind}) LIMIT ?",
        (namespace, *values, vector, limit),
    )
    return [number for (number,) in rows]


def _seeds(
    connection: SqlConnection,
    namespace: int,
    sought: _Sought,
    vector: str,
    wanted: Filter,
    depth: int,
) -> list[int]:
    """Return candidates: also those that do not pass, for what they lend to those beside them."""
    found: dict[int, None] = {}
    for each in dict.fromkeys((EVERYTHING, wanted)):
        best = _best_by_words(connection, namespace, sought, each, depth)
        found |= dict.fromkeys(number for number, _ in best)
        found |= dict.fromkeys(_nearest(connection, namespace, vector, each, depth))
    return list(found)


def _around(connection: SqlConnection, seeds: Sequence[int]) -> _Pool:
    beside = dict(connection.execute(_BESIDE, (list(seeds),)).fetchall())
    near = [number for number, step in beside.items() if step <= _NEARBY]
    return _Pool(sorted({*seeds, *beside}), sorted({*seeds, *near}))


def _index(connection: SqlConnection, namespace: int, pool: _Pool, dimensions: int) -> Index:
    which, values = _which(namespace, pool)
    rows = connection.execute(f"{_POINTS} {which} ORDER BY number", values)
    index = Index(dimensions)
    index.apply([Point(*row) for row in rows])
    return index


def _which(namespace: int, pool: _Pool) -> SqlCondition:
    if pool.loaded is None:
        return SqlCondition("namespace = ?", (namespace,))
    return SqlCondition("number = ANY(?::bigint[])", (pool.loaded,))


def _postings(
    connection: SqlConnection, index: Index, sought: _Sought, pool: _Pool
) -> list[Postings]:
    if not sought.rarities:
        return []
    only = "" if pool.loaded is None else "WHERE number = ANY(?::bigint[])"
    values: list[object] = [] if pool.loaded is None else [pool.loaded]
    by_term: dict[str, list[tuple[int, int]]] = {}
    for term, number, times in connection.execute(f"{_TIMES} {only}", (sought.terms, *values)):
        by_term.setdefault(term, []).append((number, times))
    return [
        _weighed(index, found, sought.rarities[term], sought.mean_words)
        for term, found in by_term.items()
    ]


def _weighed(
    index: Index, found: list[tuple[int, int]], rarity: float, mean_words: float
) -> Postings:
    numbers, times = np.array(sorted(found), np.int64).T
    rows = np.searchsorted(index.numbers, numbers)
    return index.weigh(rows, times, rarity=rarity, mean_words=mean_words)


def _among(
    connection: SqlConnection, namespace: int, index: Index, pool: _Pool, wanted: Filter
) -> Mask:
    """Return which rows may be found: candidates that pass the filter."""
    listed: Any = None if pool.loaded is None else pool.eligible
    if wanted != EVERYTHING:
        meets = condition(namespace, wanted)
        among = "" if listed is None else "AND notes.number = ANY(?::bigint[])"
        rows = connection.execute(
            f"SELECT number FROM notes WHERE {meets.sql} {among}",
            (*meets.values, *(() if listed is None else (listed,))),
        )
        listed = [number for (number,) in rows]
    if listed is None:
        return np.ones(len(index), np.bool_)
    mask = np.zeros(len(index), np.bool_)
    mask[index.rows_of(np.array(listed, np.int64))] = True
    return mask


_EMBED: Final = """
    UPDATE points SET vector = ?, meaning = CAST(? AS halfvec)
    WHERE number = ? AND vector IS NULL
        AND EXISTS (SELECT 1 FROM notes WHERE notes.number = points.number AND hash = ?)
"""


class PostgresStore(SqlStore):
    """Implements `Store` over one database, which is to be running as long as this is."""

    backend = "postgresql"

    def __init__(self, database: PostgresMemory) -> None:
        super().__init__(database)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Nothing is held in memory, so there is nothing to do beside the body."""
        yield

    async def search(self, namespace: str, query: Query, *, depth: int) -> Matches:
        return await self._database.read(
            lambda connection: self._match(connection, namespace, query, depth=depth)
        )

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

        return await self._database.read(work)

    async def warm(self, namespace: str) -> None:
        """The database is as warm as it is."""

    def warm_soon(self, namespace: str) -> None:
        """The same."""

    def _match(
        self, connection: SqlConnection, namespace: str, query: Query, *, depth: int
    ) -> Matches:
        known = namespace_id(connection, namespace)
        if known is None:
            return NOTHING
        if query.vector is None or made_by(connection) is None:
            matches = match_words(connection, known, query, depth=depth)
        else:
            dimensions = read_state(connection, expected=self._embedder).dimensions
            matches = match_all(connection, known, query, dimensions=dimensions, depth=depth)
        found = read_superseded(connection, list(matches.created))
        return replace(matches, superseded=found) if found else matches

    def _adopt(self, connection: SqlConnection, embedder: str, dimensions: int) -> None:
        if made_by(connection) == embedder:  # another process was quicker
            return
        adopt(connection, embedder, dimensions)
        index_meaning(connection, dimensions)

    def _embed(self, connection: SqlConnection, embedder: str, vectors: Sequence[Embedded]) -> None:
        state = read_state(connection, expected=embedder)
        texts = vector_texts([each.vector for each in vectors], state.dimensions)
        connection.executemany(
            _EMBED,
            [
                (each.vector, text, each.key, each.hash)
                for each, text in zip(vectors, texts, strict=True)
            ],
        )
