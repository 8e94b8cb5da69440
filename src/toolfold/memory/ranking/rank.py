"""Make one ranking of what was found by words and by meaning, and say why.

The score of a note, from 0 to 1, is its match times two influences:

    match     a third words, two thirds meaning, each as a share of the best there is
    time      from 1 for a note of this moment towards 0.99 for an old one
    quality   from 1 for the best to 0.8 for the worst

The influences decide among notes that match about equally well: even together they never lift one
above another whose match is a third better. Only where the query names a time, which is then a part
of what is asked, a note of then counts 1, and one far from it towards 0.7.

Notes of which one supersedes the other are about the same thing, so the best match among them is
that of whichever held at the time in question, and the others count less. See `validity`.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

# A question pasted with half a page around it: what is worth asking for stands at its beginning.
_MAX_CHARS = 10_000
_MAX_WORDS = 64

_WORD = re.compile(r"\w+")

# Words that say nothing of a subject. The list is short on purpose: longer ones, which hold words
# like `before`, `own` or `more`, found fewer of the notes that answer a question.
STOP_WORDS = frozenset(
    _WORD.findall("""
    a about an and any are as at be been by can could did do does for from had has have he her him
    his how i if in into is it its me my no not of on or our she should so some than that the their
    them then there these they this those to us was we were what when where which who whom why will
    with would you your
    """)
)

# `Ada's` and `we'll` leave an `s` and an `ll` behind, which would match every other one.
_SHORT_FORM = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_CLOSING = " \t\r\n\"'\u201d\u2019\u00bb)]*_"


def telling_words(text: str) -> list[str]:
    """Return the words of `text` that say what it is about, in lower case, each once, in order.

    Where all are stop words, all of them are returned. Of a long text only the beginning counts.
    """
    lowered = text[:_MAX_CHARS].lower()
    words = dict.fromkeys(_split(_SHORT_FORM.sub(" ", lowered)))
    telling = [word for word in words if word not in STOP_WORDS]
    return list(islice(telling or words, _MAX_WORDS))


def match_expression(text: str) -> str | None:
    """Return the FTS5 query for notes with any of the telling words of `text`.

    It is valid whatever `text` is: what FTS5 would take for syntax is quoted or left out. None
    means that `text` has no words at all.
    """
    return " OR ".join(f'"{word}"' for word in telling_words(text)) or None


def is_question(text: str) -> bool:
    """Tell whether `text` ends by asking something."""
    return text.rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def _split(text: str) -> list[str]:
    """Return the words of `text`; marks that belong to letters, as Hindi's vowels, stay in them."""
    if text.isascii():
        return _WORD.findall(text)
    joined = "".join(char if _belongs_to_word(char) else " " for char in text)
    return [word for word in joined.split() if _WORD.search(word)]


def _belongs_to_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"


Held: TypeAlias = tuple[float, float]
"""From when to when a note held; a note that holds ends when it begins."""

ScoredRows: TypeAlias = Sequence[tuple[int, float]]
"""Keys of notes and what they are worth in one respect, best first."""

WORDS: Final = "words"
WORDS_NEARBY: Final = "words_nearby"
MEANING_NEARBY: Final = "meaning_nearby"

# How long each list should be: with fewer, notes are missed that are fair in both respects.
DEPTH: Final = 300

# Shares of the best keep how far apart matches are, which fusing by rank throws away.
WEIGHTS: Final = {WORDS_NEARBY: 0.34, MEANING_NEARBY: 0.66}

# A query means something to the embedder if the best note is this near; one that is near to nothing
# does not get a full share for the least distant.
_NEAR = 0.46

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class _Fading:
    """An influence that fades with distance in time: by half of its width at `half_s`."""

    width: float
    half_s: float

    def at(self, distance_s: float) -> float:
        return 1 - self.width * distance_s / (self.half_s + distance_s)


# What is newer is more often still so; months make the difference. More would cost recall where a
# history is long.
_RECENCY = _Fading(0.01, 30 * _DAY_S)
# Things are told on the day or soon after, so days make the difference.
_NAMED_TIME = _Fading(0.3, 7 * _DAY_S)

# What a note keeps that held at another time than is asked about: it comes after all that match as
# well as the one that held, and before what has little to do with the query.
_NOT_WANTED: Final = 0.7
# What took the place of another note, or made room for one, is told for its own sake: it comes
# before what only mentions the same thing about as well.
_FOLLOWED: Final = 1.06

QUALITY_WIDTH: Final = 0.2
_QUALITY_OF_STATEMENT = 0.5
_QUALITY_OF_LITTLE = 0.0
ESTIMATES: Final = frozenset({_QUALITY_OF_LITTLE, _QUALITY_OF_STATEMENT})
_REPLIES: Final = ("assistant:", "Assistant:")
_SHORT_WORDS: Final = 25
_SHORT_CHARS: Final = 400

# Scores that differ by less are equal, so that rounding in a processor does not order notes.
_DECIMALS = 6


class Hit(NamedTuple):
    """A note that was found, and why it ranks where it does. There may be a great many of them."""

    key: int
    score: float
    """From 0 to 1: the match, which is `words` plus `meaning`, times all influences."""

    words: float
    meaning: float
    time: float
    quality: float
    words_place: int | None
    """Its rank by words, from 1; None if it is not among those found by them."""

    meaning_place: int | None
    has_words: bool
    """Whether a word of the query is in the note itself, not only beside it."""

    validity: float = 1.0
    """What the match is multiplied with because it holds, or does not."""

    def explain(self) -> str:
        """Say in one line how the score came about."""
        where = " in its neighbours" if self.words and not self.has_words else ""
        return (
            f"{self.score:.2f} = (words {self.words:.2f}{_place(self.words_place)}{where}"
            f" + meaning {self.meaning:.2f}{_place(self.meaning_place)})"
            f" x time {self.time:.2f} x quality {self.quality:.2f}"
            + (f" x validity {self.validity:.2f}" if self.validity != 1 else "")
        )


@dataclass(frozen=True, slots=True)
class _List:
    """One list of what was found: the points of each note, and its place."""

    points: Mapping[int, float]
    places: Mapping[int, int]
    points_of_absent: float

    def worth(self, key: int) -> float:
        return self.points.get(key, self.points_of_absent)


def rank(  # noqa: PLR0913  # all that is known of the notes, and of the question
    lists: Mapping[str, ScoredRows],
    *,
    created: Mapping[int, float],
    quality: Mapping[int, float],
    now: float,
    when: tuple[float, float] | None = None,
    superseded: Mapping[int, tuple[int, float]] | None = None,
    asks_about_then: bool = False,
    limit: int | None = None,
) -> list[Hit]:
    """Return the notes of the lists that count, best first; equals by age, newest first, then key.

    `WORDS_NEARBY` and `MEANING_NEARBY` count, `WORDS` serves to explain; others are ignored. Where
    one of the two is empty, the other decides alone. A list of meaning is cut where it is long
    enough, so a note that is not there is taken to be as near as the last. `when` is the time that
    the query names, from and to. Times are in seconds. Without `limit` it is all of them.

    `superseded` says of notes that no longer hold which one took their place, and when.
    """
    words, meaning = _lists(lists.get(WORDS_NEARBY, ()), lists.get(MEANING_NEARBY, ()))
    matched = _matched(words, meaning)
    held: dict[int, Held] = {}
    valid: dict[int, float] = {}
    if superseded:
        held = _held(superseded, created)
        valid = validity(matched, superseded, held, when, asks_about_then=asks_about_then)
        matched |= {key: matched[key] * factor for key, factor in valid.items()}
    fading = _RECENCY if when is None else _NAMED_TIME
    keys = matched.keys() if limit is None else _promising(matched, fading, limit)
    timely = {
        key: _time_influence(*held.get(key, (created[key], created[key])), now, when)
        for key in keys
    }
    worth = {key: 1 - QUALITY_WIDTH * (1 - quality[key]) for key in keys}
    scores = {key: round(matched[key] * timely[key] * worth[key], _DECIMALS) for key in keys}
    ordered = sorted(keys, key=lambda key: (-scores[key], -created[key], key))
    with_words = {key for key, _ in lists.get(WORDS, ())}
    return [
        Hit(
            key,
            scores[key],
            words=words.worth(key),
            meaning=meaning.worth(key),
            time=timely[key],
            quality=worth[key],
            words_place=words.places.get(key),
            meaning_place=meaning.places.get(key),
            has_words=key in with_words,
            validity=valid.get(key, 1.0),
        )
        for key in ordered[:limit]
    ]


def validity(
    matched: Mapping[int, float],
    superseded: Mapping[int, tuple[int, float]],
    held: Mapping[int, Held],
    when: tuple[float, float] | None,
    *,
    asks_about_then: bool,
) -> dict[int, float]:
    """Return by how much each note that supersedes or is superseded counts more or less.

    Of notes that took each other's place, the one that held at the time in question gets the best
    match of all of them; the others keep less than that.
    """
    factors = {}
    for chain in _chains(superseded, matched):
        best = max(matched[key] for key in chain)
        wanted = _wanted(chain, held, superseded, when, asks_about_then=asks_about_then)
        for key in chain:
            kept = min(1.0, best * _FOLLOWED) if key in wanted else matched[key] * _NOT_WANTED
            factors[key] = kept / matched[key] if matched[key] else 1.0
    return factors


def _wanted(
    chain: Sequence[int],
    held: Mapping[int, Held],
    superseded: Mapping[int, tuple[int, float]],
    when: tuple[float, float] | None,
    *,
    asks_about_then: bool,
) -> set[int]:
    past = {key for key in chain if key in superseded}
    if when is not None:
        begin, end = when
        of_then = {key for key in chain if key in held and held[key][0] < end}
        of_then = {key for key in of_then if key not in past or held[key][1] > begin}
        if of_then:
            return of_then
    elif asks_about_then and past:
        return past
    # What has taken its place may not pass the filter: then the last that does holds.
    return set(chain) - past or {max(chain, key=lambda key: held[key])}


def _chains(
    superseded: Mapping[int, tuple[int, float]], matched: Mapping[int, float]
) -> list[list[int]]:
    """Return the notes that were found, by what has taken their place in the end."""
    chains: dict[int, list[int]] = {}
    for key in superseded:
        last, seen = key, set[int]()
        while last in superseded and last not in seen:
            seen.add(last)
            last = superseded[last][0]
        members = chains.setdefault(last, [last] if last in matched else [])
        members += [key] if key in matched else []
    return [members for members in chains.values() if members]


def _held(
    superseded: Mapping[int, tuple[int, float]], created: Mapping[int, float]
) -> dict[int, Held]:
    """Return from when to when those notes held that supersede or are superseded."""
    ended = {key: (created[key], until) for key, (_, until) in superseded.items()}
    lasting = {by: (created[by], created[by]) for by, _ in superseded.values() if by in created}
    return lasting | ended


def _matched(words: _List, meaning: _List) -> dict[int, float]:
    by_words, by_meaning = words.points.get, meaning.points.get
    no_words, no_meaning = words.points_of_absent, meaning.points_of_absent
    return {
        key: by_words(key, no_words) + by_meaning(key, no_meaning)
        for key in words.points.keys() | meaning.points.keys()
    }


def _promising(matched: Mapping[int, float], fading: _Fading, limit: int) -> list[int]:
    """Return those that may be among the best: no influence lifts any other above so many."""
    kept = (1 - fading.width) * (1 - QUALITY_WIDTH)  # of a match, at the very least
    least = min(nlargest(limit, matched.values()), default=0.0) * kept - 10**-_DECIMALS
    return [key for key, match in matched.items() if match >= least]


def estimated_quality(text: str) -> float:
    """Return the quality of a note that nobody has rated: 0.5, and 0 if it only asks or replies.

    People look for what was said. A short question is like the query, since it asks the same, and
    knows no more than it; it still lends its words to the answer that follows. What an assistant
    replied is about the same things as what it was told, at greater length.
    """
    return _QUALITY_OF_LITTLE if _tells_little(text) else _QUALITY_OF_STATEMENT


def _tells_little(text: str) -> bool:
    if text.startswith(_REPLIES):
        return True
    return len(text) < _SHORT_CHARS and len(text.split()) < _SHORT_WORDS and is_question(text)


def _lists(words: ScoredRows, meaning: ScoredRows) -> tuple[_List, _List]:
    """Turn scores into points; where one list is empty, the other has all the weight."""
    words_weight = WEIGHTS[WORDS_NEARBY] if meaning else 1.0
    meaning_weight = WEIGHTS[MEANING_NEARBY] if words else 1.0
    best = max((score for _, score in words), default=1.0)
    nearest = max((cosine for _, cosine in meaning), default=1.0)
    by_words = _points(words, words_weight / best if best > 0 else 0.0)
    by_meaning = _points(meaning, meaning_weight / max(nearest, _NEAR))
    return (
        _List(by_words, _places(words), 0.0),
        _List(by_meaning, _places(meaning), min(by_meaning.values(), default=0.0)),
    )


def _points(found: ScoredRows, factor: float) -> dict[int, float]:
    return {key: max(0.0, score * factor) for key, score in found}


def _places(found: ScoredRows) -> dict[int, int]:
    return {key: place for place, (key, _) in enumerate(found, start=1)}


def _time_influence(
    created: float, until: float, now: float, when: tuple[float, float] | None
) -> float:
    """Tell how timely a note is that held until then; what is of the future is of this moment."""
    if when is None:
        return _RECENCY.at(max(0.0, now - created))
    begin, end = when
    return _NAMED_TIME.at(max(0.0, begin - until, created - end))


def _place(place: int | None) -> str:
    return "" if place is None else f" #{place}"
