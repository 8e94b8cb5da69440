"""Words and meaning make the ranking; time and quality decide among equals."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from toolfold.memory.ranking.rank import (
    MEANING_NEARBY,
    WORDS,
    WORDS_NEARBY,
    Hit,
    ScoredRows,
    estimated_quality,
    rank,
)

DAY_S = 86_400.0
NOW = 1_000 * DAY_S

scores = st.floats(0.01, 50.0)
cosines = st.floats(-1.0, 1.0)
times = st.floats(0.0, 2 * NOW) | st.sampled_from([0.0, NOW])
qualities = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0])
whens = st.none() | st.tuples(times, st.floats(0.0, 90 * DAY_S)).map(lambda at: (at[0], sum(at)))
keys = st.integers(0, 30)


def ranked(
    words: dict[int, float],
    meaning: dict[int, float],
    *,
    created: dict[int, float] | None = None,
    quality: dict[int, float] | None = None,
    when: tuple[float, float] | None = None,
    limit: int | None = None,
) -> list[Hit]:
    found = words.keys() | meaning.keys()
    return rank(
        {WORDS: in_order(words), WORDS_NEARBY: in_order(words), MEANING_NEARBY: in_order(meaning)},
        created=dict.fromkeys(found, NOW) | (created or {}),
        quality=dict.fromkeys(found, 0.5) | (quality or {}),
        now=NOW,
        when=when,
        limit=limit,
    )


def in_order(values: dict[int, float]) -> ScoredRows:
    return sorted(values.items(), key=lambda each: -each[1])


def order(hits: list[Hit]) -> list[int]:
    return [hit.key for hit in hits]


def test_a_note_that_is_good_in_both_respects_comes_before_one_that_is_best_in_one() -> None:
    hits = ranked({1: 10.0, 3: 8.0}, {2: 0.7, 3: 0.6, 1: 0.1})

    assert order(hits) == [3, 2, 1]


def test_how_far_apart_matches_are_counts_and_not_their_ranks_alone() -> None:
    close = ranked({1: 10.0, 2: 9.9}, {2: 0.6, 1: 0.5})
    apart = ranked({1: 10.0, 2: 2.0}, {2: 0.6, 1: 0.5})

    assert order(close) == [2, 1]
    assert order(apart) == [1, 2]


def test_without_meaning_words_decide_alone_and_the_other_way_round() -> None:
    assert [(hit.key, hit.words) for hit in ranked({1: 2.0, 2: 1.0}, {})] == [(1, 1.0), (2, 0.5)]
    assert [(hit.key, hit.meaning) for hit in ranked({}, {1: 0.6, 2: 0.3})] == [(1, 1.0), (2, 0.5)]


def test_nothing_found_is_nothing_ranked() -> None:
    assert ranked({}, {}) == []
    assert rank({}, created={}, quality={}, now=NOW) == []


def test_a_query_that_is_near_to_nothing_gives_no_note_a_full_share() -> None:
    [hit] = ranked({}, {1: 0.1})

    assert hit.meaning == pytest.approx(0.1 / 0.46)


def test_a_note_beyond_the_end_of_the_list_is_as_near_as_the_last() -> None:
    hits = ranked({1: 1.0}, {2: 0.8, 3: 0.4})

    [absent] = [hit for hit in hits if hit.key == 1]
    assert absent.meaning_place is None
    assert absent.meaning == pytest.approx(0.33)


def test_of_equal_matches_the_newer_comes_first() -> None:
    hits = ranked({1: 1.0, 2: 1.0, 3: 1.0}, {}, created={1: NOW - 9 * DAY_S, 3: NOW - DAY_S})

    assert order(hits) == [2, 3, 1]


def test_of_two_old_notes_the_newer_comes_first_though_their_scores_are_equal() -> None:
    hits = ranked({1: 1.0, 2: 1.0}, {}, created={1: 100.0, 2: 101.0})

    assert hits[0].score == hits[1].score
    assert order(hits) == [2, 1]


def test_of_equal_matches_the_better_one_comes_first() -> None:
    assert order(ranked({1: 1.0, 2: 1.0}, {}, quality={1: 0.4, 2: 0.6})) == [2, 1]


def test_what_only_asks_comes_after_what_tells_until_somebody_rates_it() -> None:
    asking, telling = estimated_quality("Where do you work now?"), estimated_quality("At sea.")

    assert order(ranked({1: 1.0, 2: 1.0}, {}, quality={1: asking, 2: telling})) == [2, 1]
    assert order(ranked({1: 1.0, 2: 1.0}, {}, quality={1: 1.0, 2: telling})) == [1, 2]


def test_a_named_time_counts_more_than_being_recent() -> None:
    then = (NOW - 100 * DAY_S, NOW - 99 * DAY_S)
    created = {1: NOW, 2: then[0] + 1, 3: then[1] + 2 * DAY_S}
    words = {1: 1.2, 2: 1.0, 3: 1.0}

    assert order(ranked(words, {}, created=created)) == [1, 3, 2]
    assert order(ranked(words, {}, created=created, when=then)) == [2, 3, 1]


@given(st.floats(0.01, 1.0), st.floats(4 / 3, 2.0), times, times, qualities, qualities)
def test_no_influence_lifts_a_note_above_one_whose_match_is_a_third_better(
    worse: float, times_better: float, old: float, new: float, low: float, high: float
) -> None:
    hits = ranked(
        {1: worse * times_better, 2: worse, 3: 2.0},
        {},
        created={1: old, 2: new},
        quality={1: low, 2: high},
    )

    places = order(hits)
    assert places.index(1) < places.index(2)


@given(st.floats(0.01, 1.0), st.floats(1.5, 2.0), times, times, whens)
def test_no_named_time_lifts_a_note_above_one_whose_match_is_half_better(
    worse: float, times_better: float, one: float, other: float, when: tuple[float, float] | None
) -> None:
    words = {1: worse * times_better, 2: worse, 3: 2.0}

    hits = ranked(words, {}, created={1: one, 2: other}, when=when)

    places = order(hits)
    assert places.index(1) < places.index(2)


@given(
    st.dictionaries(keys, scores),
    st.dictionaries(keys, cosines),
    st.dictionaries(keys, times),
    st.dictionaries(keys, qualities),
    whens,
)
def test_every_note_of_the_lists_is_ranked_once_with_a_score_that_its_parts_explain(
    words: dict[int, float],
    meaning: dict[int, float],
    created: dict[int, float],
    quality: dict[int, float],
    when: tuple[float, float] | None,
) -> None:
    hits = ranked(words, meaning, created=created, quality=quality, when=when)

    assert sorted(order(hits)) == sorted(words.keys() | meaning.keys())
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        match = hit.words + hit.meaning
        assert 0 <= match <= 1 + 1e-9
        assert 0 < hit.time <= 1
        assert 0 < hit.quality <= 1
        assert hit.score == pytest.approx(match * hit.time * hit.quality, abs=1e-6)
        assert "\n" not in hit.explain()


@given(
    st.dictionaries(keys, scores | st.just(1e-7)),
    st.dictionaries(keys, cosines),
    st.dictionaries(keys, times),
    st.dictionaries(keys, qualities),
    whens,
    st.integers(1, 10),
)
def test_the_best_few_are_the_first_of_all(
    words: dict[int, float],
    meaning: dict[int, float],
    created: dict[int, float],
    quality: dict[int, float],
    when: tuple[float, float] | None,
    limit: int,
) -> None:
    every = ranked(words, meaning, created=created, quality=quality, when=when)

    few = ranked(words, meaning, created=created, quality=quality, when=when, limit=limit)

    assert few == every[:limit]


@given(
    st.dictionaries(keys, st.sampled_from([1.0, 2.0])),
    st.dictionaries(keys, st.sampled_from([0.5, 0.7])),
    st.integers(),
)
def test_equal_scores_are_ordered_the_same_however_the_lists_were(
    words: dict[int, float], meaning: dict[int, float], seed: int
) -> None:
    def shuffled(values: dict[int, float]) -> dict[int, float]:
        return dict(random.Random(seed).sample(list(values.items()), len(values)))

    assert order(ranked(shuffled(words), shuffled(meaning))) == order(ranked(words, meaning))


@given(st.dictionaries(keys, scores, min_size=1), st.dictionaries(keys, cosines), st.data())
def test_a_better_match_by_words_never_ranks_lower(
    words: dict[int, float], meaning: dict[int, float], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(words)))
    raised = words | {key: words[key] * data.draw(st.floats(1.0, 10.0))}

    before, after = order(ranked(words, meaning)), order(ranked(raised, meaning))

    assert after.index(key) <= before.index(key)


def test_a_hit_says_in_one_line_why_it_ranks_where_it_does() -> None:
    hits = rank(
        {
            WORDS: [(1, 4.0)],
            WORDS_NEARBY: [(1, 4.0), (2, 3.0)],
            MEANING_NEARBY: [(2, 0.6), (3, 0.3)],
        },
        created={1: NOW - 30 * DAY_S, 2: NOW, 3: NOW},
        quality={1: 0.5, 2: 1.0, 3: 0.0},
        now=NOW,
    )

    assert [hit.explain() for hit in hits] == snapshot(
        [
            "0.92 = (words 0.26 #2 in its neighbours + meaning 0.66 #1) x time 1.00 x quality 1.00",
            "0.60 = (words 0.34 #1 + meaning 0.33) x time 0.99 x quality 0.90",
            "0.26 = (words 0.00 + meaning 0.33 #2) x time 1.00 x quality 0.80",
        ]
    )
