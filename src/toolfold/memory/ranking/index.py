"""The notes of one namespace in arrays, to be matched with a query all at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.embedding import nearness
from toolfold.memory.ranking.rank import MEANING_NEARBY, WORDS, WORDS_NEARBY
from toolfold.memory.store import Matches

# Count what stands before and after a note in its conversation or document.
#
# An answer often names nothing that its question named: "Where do you work now?", "At the
# harbour." So a note's score takes in those of its neighbours. A short note needs them, a long
# one says by itself what it is about, so how much they lend it depends on its length. That needs
# nothing but the scores and lengths of the notes themselves: no text is indexed or embedded
# twice, and a note that is written, changed or deleted leaves nothing to repair.

Numbers: TypeAlias = NDArray[np.integer]
Scores: TypeAlias = NDArray[np.float32]

# What the next note on each side counts, and the one after it: half as much with each step.
WEIGHTS = (1.0, 0.5)

# How much of what neighbours are worth comes to a short note. Words are lent far more than meaning:
# nearly everything is a little near to a query, so that lent meaning blurs what a note says itself.
WORDS_LENT = 0.7
MEANING_LENT = 0.08

# A note of so many words gets half of that, one of twice as many next to nothing.
_LONG_WORDS = 105
# The sum is divided by its weights to this power: with 0, a note among others would always come
# before one that stands alone; with 1, always after.
_SHARED = 0.6
# Long texts have something of everything: what a long note loses each time that it is e times as
# long. It does not begin before a note is long: of short ones the longer say more.
_LENGTH_LOSS = 0.1
_LEAST_KEPT = 0.3


def link(threads: Numbers, positions: Numbers) -> Numbers:
    """Return for each note which ones are beside it: before, after, two before, two after.

    One row for each note, of numbers of rows, -1 for none. `threads` numbers the conversation or
    document of each note, negative for none; neighbours are by order of `positions`, with gaps or
    not. Of notes at one position the first given comes first.
    """
    order = np.lexsort((positions, threads))
    beside = np.full((len(order), 2 * len(WEIGHTS)), -1, np.int32)
    for step in range(1, len(WEIGHTS) + 1):
        before, after = order[:-step], order[step:]
        is_same = (threads[before] == threads[after]) & (threads[before] >= 0)
        before, after = before[is_same], after[is_same]
        beside[after, 2 * step - 2] = before
        beside[before, 2 * step - 1] = after
    return beside


def influences(counts: Numbers, beside: Numbers, lent: float) -> tuple[Scores, Scores]:
    """Return what each note's own score counts, and what the scores beside it do.

    `counts` is how many words each note has, `lent` how much neighbours lend to a short one.
    """
    lengths = np.maximum(counts, 1).astype(np.float32)
    share = np.float32(lent) / (1 + (lengths / _LONG_WORDS) ** 3)
    weights = 1 + share * ((beside >= 0) @ np.array(_column_weights(), np.float32))
    own = (_kept(lengths, beside) / weights**_SHARED).astype(np.float32)
    return own, (own * share).astype(np.float32)


def with_neighbours(scores: Scores, beside: Numbers, own: Scores, others: Scores) -> Scores:
    """Return what each note is worth with its neighbours, by what `influences` returned.

    `scores` is what each is worth by itself, 0 if nothing.
    """
    padded = np.append(scores, np.float32(0))  # so that -1, none, is worth nothing
    added = np.zeros(len(beside), np.float32)
    for weight, numbers in zip(_column_weights(), beside.T, strict=True):
        added += np.float32(weight) * padded[numbers]
    added *= others
    added += own * scores
    return added


def _kept(lengths: Scores, beside: Numbers) -> Scores:
    """Return what a note keeps of its worth, by its length and whether others stand beside it.

    A word or two of a conversation, as "Thanks, Ben!", say little, whatever is said around them.
    """
    kept = np.maximum(1 - _LENGTH_LOSS * np.log1p(lengths / _LONG_WORDS), _LEAST_KEPT)
    is_part = (beside >= 0).any(axis=1)
    return np.where(is_part, kept * lengths / (lengths + 1), kept).astype(np.float32)


def _column_weights() -> list[float]:
    return [weight for weight in WEIGHTS for _ in ("before", "after")]


Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

# Whatever is less near says nothing about the query: texts about different things are below 0.1.
_LEAST_NEARNESS: Final = 0.15

# BM25 as FTS5 has it.
SATURATION: Final = 1.2
LENGTH_PENALTY: Final = 0.75
_LEAST_RARITY: Final = 1e-6

# Eight bytes each. Until something is written, the words of one query serve for the next.
_MAX_POSTINGS: Final = 2_000_000

_FIRST_CAPACITY: Final = 256
# As many rows as fit into a processor's cache once they are floats.
_BLOCK_ROWS: Final = 1_024

_POINT: Final = np.dtype(
    [
        *(("is_live", "?"), ("thread", "i8"), ("position", "i8")),
        *(("created", "f8"), ("quality", "f4"), ("words", "i4"), ("scale", "f4")),
        # What its own words and meaning count, and those of the notes beside it.
        *(("own_words", "f4"), ("words_beside", "f4")),
        *(("own_meaning", "f4"), ("meaning_beside", "f4")),
    ]
)


class Point(NamedTuple):
    """What is held of one note; the columns of the table `points`."""

    number: int
    is_live: int
    thread: int | None
    position: int | None
    created: float
    quality: float
    words: int
    vector: bytes | None


class Postings(NamedTuple):
    """The rows that have a term, and what it is worth in each."""

    rows: NDArray[np.int32]
    worth: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Rows of the index by what they are worth, best first, and how many match at all."""

    words: tuple[Rows, Floats]
    words_nearby: tuple[Rows, Floats]
    meaning_nearby: tuple[Rows, Floats]
    total: int


class Index:
    """Follows the points of a namespace. Not safe for threads: whoever uses it holds a lock."""

    def __init__(self, dimensions: int) -> None:
        self.changed = 0
        self._dimensions = dimensions
        # How many notes there are, and how many words they have on average.
        self._live = 0, 1.0
        self._terms: dict[str, Postings] = {}
        self._block = np.empty((_BLOCK_ROWS, dimensions), np.float32)
        self._size = 0
        self._numbers = np.zeros(_FIRST_CAPACITY, np.int64)
        self._points = np.zeros(_FIRST_CAPACITY, _POINT)
        self._levels = np.zeros((_FIRST_CAPACITY, dimensions), np.int8)
        # Side by side in memory, because each is gone through as a whole.
        self._beside = np.full((2 * len(WEIGHTS), _FIRST_CAPACITY), -1, np.int32).T

    def __len__(self) -> int:
        return self._size

    @property
    def numbers(self) -> Rows:
        """The number of the note in each row, ascending."""
        return self._numbers[: self._size]

    @property
    def points(self) -> NDArray[np.void]:
        """One record for each row."""
        return self._points[: self._size]

    def apply(self, points: Sequence[Point]) -> None:
        """Take over points that are new or have changed, in the order of their numbers."""
        if not points:
            return
        numbers = np.array([point.number for point in points], np.int64)
        self._append(numbers[numbers > (self._numbers[self._size - 1] if self._size else 0)])
        rows = np.searchsorted(self.numbers, numbers)
        before = self._points[rows]
        self._write(rows, points)
        after = self._points[rows]
        moved = np.concatenate([before["thread"][before["is_live"]], after["thread"]])
        self._relink(rows, np.unique(moved[moved >= 0]))
        words = self.points["words"][self.points["is_live"]]
        self._live = len(words), float(words.mean()) if len(words) else 1.0
        self._terms.clear()

    def rows_of(self, numbers: Rows) -> Rows:
        """Return the rows of these notes, without those that are not in the index."""
        if not self._size:
            return np.zeros(0, np.int64)
        first, last = int(self.numbers[0]), int(self.numbers[-1])
        if last - first == self._size - 1:  # no gaps, which saves most of the time
            found: Rows = numbers[(numbers >= first) & (numbers <= last)] - first
            return found
        rows = np.searchsorted(self.numbers, numbers).clip(max=self._size - 1)
        known: Rows = rows[self.numbers[rows] == numbers]
        return known

    def known_terms(self, terms: Iterable[str]) -> dict[str, Postings]:
        """Return what is kept of these terms since the last change."""
        return {term: self._terms[term] for term in terms if term in self._terms}

    def learn_term(self, term: str, numbers: Rows, *, is_current: bool) -> Postings:
        """Return the BM25 of the rows that have a term, and keep it if it is of this moment.

        `numbers` are of the notes that have the term, ascending, as often as they have it.
        """
        rows, times = _counted(self.rows_of(numbers))
        count, mean = self._live
        postings = self.weigh(rows, times, rarity=rarity(count, len(rows)), mean_words=mean)
        if is_current:
            if sum(len(each.rows) for each in self._terms.values()) > _MAX_POSTINGS:
                self._terms.clear()
            self._terms[term] = postings
        return postings

    def weigh(self, rows: Rows, times: Rows, *, rarity: float, mean_words: float) -> Postings:
        """Return the BM25 of rows that have a term so many times."""
        share = self.points["words"][rows] / mean_words
        held_back = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * share)
        worth = rarity * times * (SATURATION + 1) / (times + held_back)
        return Postings(rows.astype(np.int32), worth.astype(np.float32))

    def score_words(self, terms: Iterable[Postings]) -> Floats:
        """Return the BM25 of every row, for all of these terms together."""
        scores = np.zeros(self._size, np.float32)
        for rows, worth in terms:
            scores[rows] += worth
        return scores

    def match(self, words: Floats, vector: Floats, among: Mask, *, depth: int) -> Matched:
        """Return what matches by words and by meaning, of the live rows `among` those given."""
        among = among & self.points["is_live"]
        near = np.maximum(self._nearness(vector), 0)
        has_meaning = near >= _LEAST_NEARNESS
        words_nearby = self._with_neighbours(words, "words")
        meaning_nearby = self._with_neighbours(near, "meaning")
        matches = among & (has_meaning | (words_nearby > 0))
        return Matched(
            words=_best(words, among & (words > 0), depth),
            words_nearby=_best(words_nearby, among & (words_nearby > 0), depth),
            meaning_nearby=_best(meaning_nearby, matches & (meaning_nearby > 0), depth),
            total=int(matches.sum()),
        )

    def _append(self, numbers: Rows) -> None:
        size = self._size + len(numbers)
        while size > len(self._points):
            self._numbers = np.concatenate([self._numbers, np.zeros_like(self._numbers)])
            self._points = np.concatenate([self._points, np.zeros_like(self._points)])
            self._levels = np.concatenate([self._levels, np.zeros_like(self._levels)])
            sides = np.concatenate([self._beside.T, np.full_like(self._beside.T, -1)], axis=1)
            self._beside = sides.T
        self._numbers[self._size : size] = numbers
        self._size = size

    def _write(self, rows: Rows, points: Sequence[Point]) -> None:
        empty = bytes(4 + self._dimensions)
        blobs = b"".join([point.vector or empty for point in points])
        layout = np.dtype([("scale", "<f4"), ("levels", "i1", (self._dimensions,))])
        vectors = np.frombuffer(blobs, layout)
        self._levels[rows] = vectors["levels"]
        self._points[rows] = self._records(points)
        self._points["scale"][rows] = vectors["scale"]

    def _records(self, points: Sequence[Point]) -> NDArray[np.void]:
        records = np.zeros(len(points), _POINT)
        _, live, threads, positions, created, quality, words, _ = zip(*points, strict=True)
        records["is_live"] = live
        records["thread"] = [-1 if each is None else each for each in threads]
        records["position"] = [each or 0 for each in positions]
        records["created"], records["quality"], records["words"] = created, quality, words
        return records

    def _relink(self, rows: Rows, threads: Rows) -> None:
        """Find anew who is beside whom in these threads, after these rows have changed."""
        points = self.points
        among = np.union1d(rows, np.flatnonzero(np.isin(points["thread"], threads)))
        placed = among[points["is_live"][among] & (points["thread"][among] >= 0)]
        found = link(points["thread"][placed], points["position"][placed])
        beside = np.full((self._size, self._beside.shape[1]), -1, np.int32)
        beside[placed] = np.where(found >= 0, placed[found], -1)
        self._beside[among] = beside[among]
        counts, sides = points["words"][among], beside[among]
        for name, lent in (("words", WORDS_LENT), ("meaning", MEANING_LENT)):
            own, others = influences(counts, sides, lent)
            self._points[f"own_{name}"][among] = own
            self._points[f"{name}_beside"][among] = others

    def _with_neighbours(self, scores: Floats, name: str) -> Floats:
        own, others = self.points[f"own_{name}"], self.points[f"{name}_beside"]
        return with_neighbours(scores, self._beside[: self._size], own, others)

    def _nearness(self, vector: Floats) -> Floats:
        cosines = np.empty(self._size, np.float32)
        for start in range(0, self._size, _BLOCK_ROWS):
            levels = self._levels[start : min(start + _BLOCK_ROWS, self._size)]
            block = self._block[: len(levels)]
            # Into memory that is there already: to get it anew takes as long as the product.
            np.copyto(block, levels)
            np.dot(block, vector, out=cosines[start : start + len(levels)])
        cosines *= self.points["scale"]
        return nearness(cosines)


def rarity(notes: int, having: int) -> float:
    """Return what a term is worth that so many of all notes have."""
    return max(float(np.log((notes - having + 0.5) / (having + 0.5))), _LEAST_RARITY)


def _counted(rows: Rows) -> tuple[Rows, Rows]:
    """Return each of these ascending rows once, and how often it is there."""
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    return rows[starts], np.diff(starts, append=len(rows))


def _best(scores: Floats, mask: Mask, limit: int) -> tuple[Rows, Floats]:
    """Return the rows of the highest scores and the scores, highest first, of equals the newest."""
    rows = np.flatnonzero(mask)
    if len(rows) > limit:
        rows = rows[np.argpartition(-scores[rows], limit - 1)[:limit]]
    rows = rows[np.lexsort((-rows, -scores[rows]))]
    return rows, scores[rows]


def as_matches(index: Index, matched: Matched) -> Matches:
    """Return what matched, with the keys of notes for rows."""
    lists = {
        WORDS: matched.words,
        WORDS_NEARBY: matched.words_nearby,
        MEANING_NEARBY: matched.meaning_nearby,
    }
    rows = np.unique(np.concatenate([matched.words_nearby[0], matched.meaning_nearby[0]]))
    numbers, points = index.numbers[rows].tolist(), index.points[rows]
    return Matches(
        lists={
            name: list(zip(index.numbers[found].tolist(), scores.tolist(), strict=True))
            for name, (found, scores) in lists.items()
        },
        created=dict(zip(numbers, points["created"].tolist(), strict=True)),
        quality=dict(zip(numbers, points["quality"].tolist(), strict=True)),
        total=matched.total,
    )
