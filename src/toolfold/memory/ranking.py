"""Make one ranking of what was found by words and by meaning, and say why.

The score of a note, from 0 to 1, is its match times two influences:

    match     half words, half meaning, each as a share of the best there is
    time      from 1 for a note of this moment towards 0.95 for an old one
    quality   from 1 for the best to 0.8 for the worst

The influences decide among notes that match about equally well: even together they never lift one
above another whose match is a third better. Only where the query names a time, which is then a part
of what is asked, a note of then counts 1, and one far from it towards 0.7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolfold.memory.words import is_question

Found: TypeAlias = Sequence[tuple[int, float]]
"""Keys of notes and what they are worth in one respect, best first."""

WORDS: Final = "words"
WORDS_NEARBY: Final = "words_nearby"
MEANING_NEARBY: Final = "meaning_nearby"

# How long each list should be: with fewer, notes are missed that are fair in both respects.
DEPTH: Final = 400

# Words and meaning count the same. Shares of the best keep how far apart matches are, which fusing
# by rank throws away: that found as many notes within ten, and put the right one first less often.
WEIGHTS: Final = {WORDS_NEARBY: 0.5, MEANING_NEARBY: 0.5}

# A query means something to the embedder if the best note is this near; one that is near to nothing
# does not get a full share for the least distant.
_NEAR_COSINE = 0.5

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class _Fading:
    """An influence that fades with distance in time: by half of its width at `half_s`."""

    width: float
    half_s: float

    def at(self, distance_s: float) -> float:
        return 1 - self.width * distance_s / (self.half_s + distance_s)


# What is newer is more often still so; months make the difference.
_RECENCY = _Fading(0.05, 30 * _DAY_S)
# Things are told on the day or soon after, so days make the difference.
_NAMED_TIME = _Fading(0.3, 7 * _DAY_S)

QUALITY_WIDTH: Final = 0.2
_QUALITY_OF_STATEMENT = 0.5
_QUALITY_OF_QUESTION = 0.0

# Scores that differ by less are equal, so that rounding in a processor does not order notes.
_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one list says of a note."""

    place: int | None
    """Its rank there, from 1; None if it is not in the list."""

    share: float
    """How good it is, of the best there is."""

    points: float
    """What that adds to the match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A note that was found, and why it ranks where it does."""

    key: int
    score: float
    """From 0 to 1: `match` times `time` times `quality`."""

    match: float
    words: Part
    meaning: Part
    time: float
    quality: float
    has_words: bool
    """Whether a word of the query is in the note itself, not only beside it."""

    def explain(self) -> str:
        """Say in one line how the score came about."""
        where = "" if self.has_words or not self.words.share else ", all in its neighbours"
        return (
            f"{self.score:.3f} = (words {_described(self.words)}{where}"
            f" + meaning {_described(self.meaning)})"
            f" x time {self.time:.3f} x quality {self.quality:.3f}"
        )


@dataclass(frozen=True, slots=True)
class _List:
    """One list of what was found, by key."""

    places: Mapping[int, int]
    shares: Mapping[int, float]
    share_of_absent: float
    weight: float

    def part(self, key: int) -> Part:
        share = self.shares.get(key, self.share_of_absent)
        return Part(place=self.places.get(key), share=share, points=self.weight * share)


def rank(
    lists: Mapping[str, Found],
    *,
    created: Mapping[int, float],
    quality: Mapping[int, float],
    now: float,
    when: tuple[float, float] | None = None,
) -> list[Hit]:
    """Return every note of the lists that count, best first; equals by age, newest first, then key.

    `WORDS_NEARBY` and `MEANING_NEARBY` count, `WORDS` serves to explain; others are ignored. Where
    one of the two is empty, the other decides alone. A list of meaning is cut where it is long
    enough, so a note that is not there is taken to be as near as the last. `when` is the time that
    the query names, from and to. Times are in seconds.
    """
    words, meaning = _lists(lists.get(WORDS_NEARBY, ()), lists.get(MEANING_NEARBY, ()))
    with_words = {key for key, _ in lists.get(WORDS, ())}
    hits = [
        _hit(
            key,
            words.part(key),
            meaning.part(key),
            time=_time_influence(created[key], now, when),
            quality=1 - QUALITY_WIDTH * (1 - quality[key]),
            has_words=key in with_words,
        )
        for key in words.places.keys() | meaning.places.keys()
    ]
    return sorted(hits, key=lambda hit: (-hit.score, -created[hit.key], hit.key))


def estimated_quality(text: str) -> float:
    """Return the quality of a note that nobody has rated: 0.5, and 0 if it only asks.

    People look for what was said. A question is like the query, since it asks the same, and knows
    no more than it; it still lends its words to the answer that follows.
    """
    return _QUALITY_OF_QUESTION if is_question(text) else _QUALITY_OF_STATEMENT


def _lists(words: Found, meaning: Found) -> tuple[_List, _List]:
    words_weight = WEIGHTS[WORDS_NEARBY] if meaning else 1.0
    meaning_weight = WEIGHTS[MEANING_NEARBY] if words else 1.0
    by_words = _shared(words, best=max((score for _, score in words), default=1.0))
    nearest = max((cosine for _, cosine in meaning), default=1.0)
    by_meaning = _shared(meaning, best=max(nearest, _NEAR_COSINE))
    last = min(by_meaning.values(), default=0.0)
    return (
        _List(_places(words), by_words, 0.0, words_weight),
        _List(_places(meaning), by_meaning, last, meaning_weight),
    )


def _shared(found: Found, *, best: float) -> dict[int, float]:
    return {key: max(0.0, score / best) if best > 0 else 0.0 for key, score in found}


def _places(found: Found) -> dict[int, int]:
    return {key: place for place, (key, _) in enumerate(found, start=1)}


def _hit(
    key: int, words: Part, meaning: Part, *, time: float, quality: float, has_words: bool
) -> Hit:
    match = words.points + meaning.points
    return Hit(
        key=key,
        score=round(match * time * quality, _DECIMALS),
        match=match,
        words=words,
        meaning=meaning,
        time=time,
        quality=quality,
        has_words=has_words,
    )


def _time_influence(created: float, now: float, when: tuple[float, float] | None) -> float:
    """Tell how timely a note is; what is dated in the future is of this moment."""
    if when is None:
        return _RECENCY.at(max(0.0, now - created))
    begin, end = when
    return _NAMED_TIME.at(max(0.0, begin - created, created - end))


def _described(part: Part) -> str:
    place = "" if part.place is None else f" #{part.place}"
    return f"{part.points:.3f}{place}"
