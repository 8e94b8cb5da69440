"""A note's neighbours in its conversation lend it their words and their meaning."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from toolfold.memory.ranking.context import (
    WEIGHTS,
    link,
    meaning_nearby,
    nearby_lengths,
    weight_roots,
    words_nearby,
)
from toolfold.memory.ranking.words import match_expression

places = st.lists(st.tuples(st.integers(-1, 3), st.integers(-5, 40)), min_size=1, max_size=40)


def linked(*at: tuple[int, int]) -> NDArray[np.integer]:
    return link(np.array([thread for thread, _ in at]), np.array([place for _, place in at]))


def nearby(scores: list[float], beside: NDArray[np.integer]) -> list[float]:
    found = words_nearby(np.array(scores, np.float32), beside, weight_roots(beside))
    return [round(float(score), 3) for score in found]


def test_notes_are_beside_each_other_by_position_in_whatever_order_they_came() -> None:
    beside = linked((7, 30), (7, 10), (7, 20), (7, 40))

    assert beside.tolist() == [[2, 3, 1, -1], [-1, 2, -1, 0], [1, 0, -1, 3], [0, -1, 2, -1]]


def test_a_conversation_ends_where_the_next_begins() -> None:
    assert linked((1, 1), (2, 2)).tolist() == [[-1] * 4, [-1] * 4]


def test_notes_of_no_conversation_stand_alone() -> None:
    assert linked((-1, 1), (-1, 2)).tolist() == [[-1] * 4, [-1] * 4]


def test_there_may_be_no_notes_at_all() -> None:
    none = np.array([], np.int64)
    beside = link(none, none)

    assert nearby([], beside) == []
    assert nearby_lengths(np.zeros((0, 3), np.float32), beside).tolist() == []


def test_a_note_that_stands_alone_is_worth_its_own_words() -> None:
    assert nearby([4.0, 2.0], linked((-1, 0), (-1, 0))) == [4.0, 2.0]


def test_words_count_for_two_notes_on_each_side_and_less_the_farther() -> None:
    beside = linked(*((0, place) for place in range(7)))

    found = nearby([0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0], beside)

    assert found[0] == found[6] == 0
    assert 0 < found[1] < found[2] < found[3]
    assert found[1:3] == pytest.approx(found[5:3:-1], abs=0.5)


def test_a_full_match_alone_comes_before_a_conversation_of_halves() -> None:
    beside = linked((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (-1, 0))

    found = nearby([5.0, 5.0, 5.0, 5.0, 5.0, 10.0], beside)

    assert max(found) == found[5]


def test_words_said_on_both_sides_count_more_than_the_same_words_alone() -> None:
    beside = linked((0, 1), (0, 2), (0, 3), (-1, 0))

    found = nearby([10.0, 10.0, 10.0, 10.0], beside)

    assert found[1] > found[3]


@given(places, st.integers(0, 2**32 - 1))
def test_meaning_nearby_is_the_cosine_with_the_weighted_sum_of_the_vectors(
    at: list[tuple[int, int]], seed: int
) -> None:
    made = np.random.default_rng(seed)
    vectors = made.standard_normal((len(at), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = vectors.mean(axis=0)
    beside = linked(*at)

    found = meaning_nearby(vectors @ query, beside, nearby_lengths(vectors, beside))

    for row, others in enumerate(beside.tolist()):
        weights = np.repeat(WEIGHTS, 2)
        together = vectors[row] + sum(
            weight * vectors[other]
            for weight, other in zip(weights, others, strict=True)
            if other >= 0
        )
        expected = together @ query / np.linalg.norm(together)
        assert found[row] == pytest.approx(expected, abs=1e-4)


def test_lengths_are_the_same_in_many_blocks_as_in_one() -> None:
    made = np.random.default_rng(3)
    vectors = made.standard_normal((2_500, 4)).astype(np.float32)
    beside = linked(*((place // 700, place) for place in range(2_500)))

    found = nearby_lengths(vectors, beside)

    for rows in (slice(0, 3), slice(1_020, 1_030), slice(2_490, 2_500)):
        weights = np.repeat(np.array(WEIGHTS, np.float32), 2)[:, np.newaxis]
        is_there = (beside[rows] >= 0)[:, :, np.newaxis]
        summed = vectors[rows] + (vectors[beside[rows]] * is_there * weights).sum(axis=1)
        assert found[rows] == pytest.approx(np.linalg.norm(summed, axis=1), rel=1e-5)


def test_vectors_of_neighbours_alone_may_follow_those_of_the_notes() -> None:
    vectors = np.eye(3, dtype=np.float32)
    beside = np.array([[1, 2, -1, -1]])

    assert nearby_lengths(vectors, beside) == pytest.approx([np.sqrt(1.5)])


def test_a_note_without_a_vector_means_what_its_neighbours_mean_and_alone_nothing() -> None:
    vectors = np.array([[1, 0], [0, 0], [0, 0]], np.float32)
    beside = linked((0, 1), (0, 2), (-1, 0))
    cosines = vectors @ np.array([0.8, 0.6], np.float32)

    found = meaning_nearby(cosines, beside, nearby_lengths(vectors, beside))

    assert found[:2] == pytest.approx([0.8, 0.8])
    assert np.isnan(found[2])


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    said = [
        "Ben: Which company do you work for now?",
        "Ada: The harbour office, since May.",
        "Ada: Happy birthday!",
    ]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE notes USING fts5(text, tokenize = 'porter unicode61')")
    database.executemany("INSERT INTO notes (rowid, text) VALUES (?, ?)", enumerate(said))
    own = [0.0] * len(said)
    asked = match_expression("What company does Ada work for?")
    for row, score in database.execute(
        "SELECT rowid, -bm25(notes) FROM notes WHERE notes MATCH ?", (asked,)
    ):
        own[row] = score
    database.close()

    found = nearby(own, linked((0, 1), (0, 2), (-1, 0)))

    assert own[2] > own[1]
    assert found[1] > found[2]
