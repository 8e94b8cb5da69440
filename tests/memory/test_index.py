"""The arrays in memory against what they stand for."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbedder
from hypothesis import given
from hypothesis import strategies as st
from stores import draft, embed_all, sqlite_store
from support import examples

from toolfold.embedding import quantize
from toolfold.memory.ranking.index import Index, Point
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.store import Query

WORDS = ["fox", "foxes", "red", "run", "running", "the", "x9", "café", "a_b", "日本"]
DIMENSIONS = 8


async def test_words_score_as_fts5_scores_them(tmp_path: Path, embedder: FakeEmbedder) -> None:
    rng = np.random.default_rng(1)
    contents = {" ".join(rng.choice(WORDS, size=rng.integers(1, 40))) for _ in range(300)}
    async with sqlite_store(tmp_path) as store:
        await store.add("p", [draft(content) for content in sorted(contents)], now=1.0)
        await store.delete("p", [draft(content).hash for content in sorted(contents)[:20]], now=2.0)
        await embed_all(store, embedder)
        for query in ("red fox", "running the café", "日本 x9", "missing"):
            before = await store.search("p", Query(text=query, vector=None), depth=400)
            await store.warm("p")
            nothing = [0.0] * embedder.dimensions
            after = await store.search(
                "p", Query(text=query, vector=partial(list, nothing)), depth=400
            )

            expected, scored = (
                dict(before.lists["words"] if before.total else []),
                dict(after.lists["words"]),
            )
            assert scored == pytest.approx(expected, rel=1e-4)
            assert after.total == before.total


POINTS = st.lists(
    st.tuples(
        st.integers(1, 30),
        st.booleans(),
        st.sampled_from([None, 1, 2]),
        st.integers(-2, 4),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@examples(200)
@given(POINTS, st.integers(1, 5))
def test_points_that_come_bit_by_bit_leave_what_all_at_once_would(
    changes: list[tuple[int, bool, int | None, int, bool]], pieces: int
) -> None:
    rng = np.random.default_rng(0)
    highest = 0
    latest: dict[int, Point] = {}
    gradual = Index(DIMENSIONS)
    for piece in np.array_split(np.arange(len(changes)), pieces):
        batch: dict[int, Point] = {}
        for at in piece:
            request, is_live, thread, position, has_vector = changes[at]
            # Numbers only ever grow: what is not known yet is the next.
            number = request if request <= highest else highest + 1
            highest = max(highest, number)
            vector = rng.standard_normal((1, DIMENSIONS)).astype(np.float32)
            blob = quantize(vector)[0] if has_vector else None
            batch[number] = Point(number, is_live, thread, position, 1.0, 0.5, 3, blob)
        latest |= batch
        gradual.apply([batch[number] for number in sorted(batch)])
    whole = Index(DIMENSIONS)
    whole.apply([latest[number] for number in sorted(latest)])

    assert gradual.numbers.tolist() == whole.numbers.tolist()
    for name in whole.points.dtype.names or ():
        np.testing.assert_allclose(gradual.points[name], whole.points[name], rtol=1e-5)
    words = rng.random(len(whole)).astype(np.float32)
    query = rng.standard_normal(DIMENSIONS).astype(np.float32)
    among = np.ones(len(whole), np.bool_)
    expected = whole.match(words, query, among, depth=100)
    found = gradual.match(words, query, among, depth=100)
    assert found.total == expected.total
    for name in ("words", "words_nearby", "meaning_nearby"):
        rows, scores = getattr(found, name)
        assert rows.tolist() == getattr(expected, name)[0].tolist()
        np.testing.assert_allclose(scores, getattr(expected, name)[1], rtol=1e-4)


async def test_a_search_in_many_namespaces_keeps_the_last_ones_in_memory(
    tmp_path: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolfold.memory.sqlite.matcher._MAX_POINTS", 25)
    file = SqliteFile(tmp_path / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        for name in "abcd":
            await store.add(name, [draft(f"{name} {n}") for n in range(10)], now=1.0)
        await embed_all(store, embedder)
        for name in "abcd":
            await store.warm(name)
        warm = [name for name in "abcd" if (await store.counts(name)).is_warm]

    assert warm == ["c", "d"]
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
