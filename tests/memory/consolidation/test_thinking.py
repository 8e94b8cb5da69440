"""What is found among notes, without a store."""

import numpy as np
import pytest
from consolidating import DAY_S, kept
from fakes import FakeEmbedder
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from toolfold.embedding import dequantize, nearness, quantize
from toolfold.memory.consolidation import associations
from toolfold.memory.consolidation.associations import (
    find_associations,
    find_nearby,
    find_patterns,
    read_vectors,
)
from toolfold.memory.consolidation.models import Comparison
from toolfold.memory.consolidation.planner import find_clusters, idle_days, influence, is_to_archive
from toolfold.memory.consolidation.report import summarize
from toolfold.memory.consolidation.study import StudiedNote, study, subjects

COMPARING = Comparison(
    links_per_note=2, least_strength=0.6, least_nearness=0.5, fewest_in_cluster=3
)


def notes_of(*texts: str, threads: bool = False) -> list[StudiedNote]:
    blobs = quantize(FakeEmbedder().embed(texts))
    return [
        study(kept(text, key, vector=blob, thread="talk" if threads else None))
        for key, (text, blob) in enumerate(zip(texts, blobs, strict=True))
    ]


def nothing(done: int, total: int) -> None:
    pass


@pytest.mark.parametrize("sizes", [(1_024, 8_192), (7, 5), (1, 1)])
def test_neighbours_are_those_of_the_whole_product_however_it_is_cut(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(associations, "_BLOCK_ROWS", sizes[0])
    monkeypatch.setattr(associations, "_BLOCK_COLUMNS", sizes[1])
    random = np.random.default_rng(3)
    rows = random.standard_normal((60, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    blobs = quantize(rows)

    found = find_nearby(read_vectors([*blobs, None, b"odd"]), least=0.5, tick=nothing)

    stored = dequantize(blobs, dimensions=8)
    whole = nearness(stored @ stored.T)
    np.fill_diagonal(whole, -1)
    assert set(zip(found.rows, found.columns, strict=True)) == set(
        zip(*np.nonzero(whole >= 0.5), strict=True)
    )
    assert np.allclose(found.nearness, whole[found.rows, found.columns], atol=1e-3)
    order = list(zip(found.rows, -found.nearness, found.columns, strict=True))
    assert order == sorted(order)


def test_of_many_neighbours_the_nearest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(associations, "_BLOCK_COLUMNS", 64)
    vectors = read_vectors(quantize(np.ones((200, 4), np.float32)))

    found = find_nearby(vectors, least=0.5, tick=nothing)

    assert np.bincount(found.rows).tolist() == [associations.MAX_NEIGHBOURS] * 200


def test_nothing_is_near_where_there_is_nothing() -> None:
    for blobs in ([], [None], [None, None]):
        assert len(find_nearby(read_vectors(blobs), least=0.5, tick=nothing).rows) == 0


def test_associations_are_of_notes_that_are_near_for_both_sides() -> None:
    notes = notes_of(
        *(f"zebra stripes seen by ranger {name}" for name in ("ada", "bob", "eve", "kim")),
        "quarterly invoice numbering",
        "submarine cable repair",
    )
    vectors = read_vectors([note.vector for note in notes])
    nearby = find_nearby(vectors, least=0.5, tick=nothing)

    pairs = find_associations(notes, vectors, nearby, COMPARING)

    assert pairs
    assert all(pair.row < pair.other <= 3 for pair in pairs)
    links = [row for pair in pairs for row in (pair.row, pair.other)]
    assert max(links.count(row) for row in links) <= COMPARING.links_per_note
    talk = notes_of(*(f"zebra stripes {name}" for name in ("ada", "bob", "eve")), threads=True)
    near = find_nearby(read_vectors([n.vector for n in talk]), least=0.1, tick=nothing)
    assert len(near.rows) > 0
    assert not find_associations(talk, read_vectors([n.vector for n in talk]), near, COMPARING)


def test_a_cluster_is_near_its_middle_and_of_several_occasions() -> None:
    texts = [f"zebra stripes seen by ranger {name}" for name in ("ada", "bob", "eve", "kim")]
    others = ["quarterly invoice numbering", "submarine cable repair"]
    notes = notes_of(*texts, *others)
    nearby = find_nearby(read_vectors([n.vector for n in notes]), least=0.5, tick=nothing)

    assert [sorted(each) for each in find_clusters(notes, nearby, COMPARING)] == [[0, 1, 2, 3]]

    talk = notes_of(*texts, *others, threads=True)
    assert find_clusters(talk, nearby, COMPARING) == []


def test_a_summary_is_made_of_the_words_of_the_texts() -> None:
    texts = [
        "The nightly backup failed. Disk full on the backup host.",
        "Backup failed again: disk full. We ordered a larger disk.",
        "Lunch was good. The backup failed because the disk was full.",
    ]
    counts = {word: 3 for text in texts for word in subjects(text)}

    summary = summarize(texts, counts, 100)

    assert set(summary.words) <= {"backup", "failed", "disk", "full"}
    first, *_ = summary.text.split(" … ")
    assert any(first in text for text in texts)
    assert "Lunch" not in summary.text
    assert summarize(["one", "two"], {}, 2).text == "one"
    assert summarize([], {}, 0) == ("", ())


def test_a_pattern_names_what_comes_together_more_often_than_by_chance() -> None:
    texts = [
        *(f"release train {number} stuck at the signing step" for number in range(5)),
        *(f"lunch menu number {number} is served" for number in range(30)),
        "release notes are written by hand",
    ]

    patterns = find_patterns(notes_of(*texts), fewest=3)

    release = next(each for each in patterns if "signing" in each.items or "stuck" in each.items)
    assert release.rows == (0, 1, 2, 3, 4)
    assert release.confidence == pytest.approx(6 / 7, abs=0.01)
    assert not find_patterns(notes_of(*texts, threads=True), fewest=3), "of one conversation"
    assert find_patterns([], fewest=3) == []


@pytest.mark.parametrize(
    ("days", "quality", "gets", "expected"),
    [
        (0, 0.5, 0, 0.5),
        (90, 0.5, 0, 0.5),
        (270, 0.5, 0, 0.375),
        (5000, 0.5, 0, 0.25),
        (270, 0.5, 4, 0.425),
        (5000, 0.0, 0, 0.0),
        (5000, 1.0, 0, 0.5),
    ],
)
def test_influence_fades_with_time_slower_for_what_is_used_and_good(
    days: float, quality: float, gets: int, expected: float
) -> None:
    note = study(kept("a", quality=quality, gets=gets))

    assert influence(note, latest=1000.0 + days * DAY_S) == pytest.approx(expected, abs=0.001)


@given(st.floats(0, 1), st.integers(0, 50), st.floats(0, 1e4), st.floats(0, 1e4))
@examples(200)
def test_influence_is_never_more_than_quality_and_never_less_than_half(
    quality: float, gets: int, days: float, more: float
) -> None:
    note = study(kept("a", quality=quality, gets=gets))
    now, later = (influence(note, latest=1000 + d * DAY_S) for d in (days, days + more))

    assert quality / 2 <= later <= now <= quality


@pytest.mark.parametrize(
    ("values", "days", "is_archived"),
    [
        ({"quality": 0.1}, 366, True),
        ({"quality": 0.1}, 364, False),
        ({"quality": 0.25}, 5000, False),
        ({"quality": 0.1, "thread": "talk"}, 5000, False),
        ({"quality": 0.1, "last_used": 1000 + 100 * DAY_S}, 400, False),
        ({"content": "Is it slow?"}, 5000, False),
        ({"content": "Is it slow?", "quality": 0.1}, 5000, True),
    ],
)
def test_archived_is_what_somebody_rated_poor_and_nobody_used(
    values: dict[str, object], days: float, is_archived: bool
) -> None:
    note = study(kept(str(values.pop("content", "a")), **values))

    assert is_to_archive(note, latest=1000.0 + days * DAY_S) is is_archived
    assert idle_days(note, latest=0.0) == 0
