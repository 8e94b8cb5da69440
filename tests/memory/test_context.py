"""A note's neighbours in its conversation lend it their words and their meaning."""

import sqlite3

import numpy as np
import pytest
from numpy.typing import NDArray

from toolfold.memory.ranking.index import WORDS_LENT, influences, link, with_neighbours
from toolfold.memory.ranking.rank import match_expression


def linked(*at: tuple[int, int]) -> NDArray[np.integer]:
    return link(np.array([thread for thread, _ in at]), np.array([place for _, place in at]))


def nearby(scores: list[float], beside: NDArray[np.integer], words: int = 10) -> list[float]:
    own, others = influences(np.full(len(scores), words), beside, WORDS_LENT)
    found = with_neighbours(np.array(scores, np.float32), beside, own, others)
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


def test_a_note_that_stands_alone_is_worth_its_own_words_the_less_the_longer_it_is() -> None:
    alone = linked((-1, 0), (-1, 0))

    short, long = nearby([4.0, 2.0], alone), nearby([4.0, 2.0], alone, words=2_000)

    assert short[0] == pytest.approx(2 * short[1], abs=0.01)
    assert short[0] > long[0] > short[0] / 2


def test_a_few_words_of_a_conversation_are_worth_less_than_a_sentence_of_it() -> None:
    beside = linked((0, 1), (0, 2))

    few, sentence = nearby([4.0, 4.0], beside, words=2), nearby([4.0, 4.0], beside, words=25)

    assert few[0] < 0.8 * sentence[0]


def test_a_short_note_that_stands_alone_is_worth_no_less_than_a_sentence() -> None:
    alone = linked((-1, 0))

    assert nearby([4.0], alone, words=2)[0] >= nearby([4.0], alone, words=25)[0]


def test_a_note_without_any_word_is_still_worth_its_meaning() -> None:
    assert nearby([4.0, 4.0], linked((0, 1), (0, 2)), words=0)[0] > 0


def test_neighbours_lend_to_a_short_note_and_hardly_to_a_long_one() -> None:
    beside = linked((0, 1), (0, 2))

    short, long = nearby([0.0, 8.0], beside), nearby([0.0, 8.0], beside, words=500)

    assert short[0] > 2
    assert 0 < long[0] < 0.05


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
