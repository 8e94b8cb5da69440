"""Find notes by words alone, by what FTS5 says: ready at once, and without numpy."""

import sqlite3

from toolfold.memory.ranking.rank import WORDS, WORDS_NEARBY
from toolfold.memory.ranking.words import match_expression
from toolfold.memory.sqlite.filters import condition
from toolfold.memory.sqlite.schema import words_table
from toolfold.memory.store import EVERYTHING, Filter, Matches, Query, Scored

NOTHING = Matches(lists={}, created={}, quality={}, total=0)


def match_words(
    connection: sqlite3.Connection, namespace: int, query: Query, *, depth: int
) -> Matches:
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


def _count(connection: sqlite3.Connection, namespace: int, expression: str, wanted: Filter) -> int:
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
