"""Find notes by words alone, by what FTS5 says: ready at once, and without numpy."""

import sqlite3

from toolfold.memory.filters import condition
from toolfold.memory.ranking import WORDS, WORDS_NEARBY
from toolfold.memory.schema import words_table
from toolfold.memory.store import EVERYTHING, Filter, Matches, Query, Scored
from toolfold.memory.words import match_expression

NOTHING = Matches(lists={}, created={}, quality={}, total=0)


def match_words(
    connection: sqlite3.Connection, namespace: int, query: Query, *, depth: int
) -> Matches:
    """Return what matches by its own words; what stands beside it does not count."""
    expression = match_expression(query.text)
    if expression is None:
        return NOTHING
    words = words_table(namespace)
    meets = condition(namespace, query.wanted)
    found = connection.execute(
        f"SELECT notes.number, -bm25({words}), notes.created, notes.quality "
        f"FROM {words} JOIN notes ON notes.number = {words}.rowid "
        f"WHERE {words} MATCH ? AND {meets.sql} ORDER BY bm25({words}), notes.number DESC LIMIT ?",
        (expression, *meets.values, depth),
    ).fetchall()
    scored: list[Scored] = [(number, score) for number, score, _, _ in found]
    return Matches(
        lists={WORDS: scored, WORDS_NEARBY: scored},
        created={number: created for number, _, created, _ in found},
        quality={number: quality for number, _, _, quality in found},
        total=_count(connection, namespace, expression, query.wanted),
    )


def _count(connection: sqlite3.Connection, namespace: int, expression: str, wanted: Filter) -> int:
    words = words_table(namespace)
    meets = condition(namespace, wanted)
    # The index of words holds what is not deleted, so without a filter it knows by itself.
    join = f"JOIN notes ON notes.number = {words}.rowid" if wanted != EVERYTHING else ""
    sql, values = (f"AND {meets.sql}", meets.values) if join else ("", ())
    [total] = connection.execute(
        f"SELECT count(*) FROM {words} {join} WHERE {words} MATCH ? {sql}", (expression, *values)
    ).fetchone()
    counted: int = total
    return counted
