"""The notes of one namespace in arrays, to be matched with a query all at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.embedding import nearness
from toolfold.memory.ranking.context import (
    MEANING_LENT,
    WEIGHTS,
    WORDS_LENT,
    influences,
    link,
    with_neighbours,
)

Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

# Whatever is less near says nothing about the query: texts about different things are below 0.1.
_LEAST_NEARNESS: Final = 0.15

# BM25 as FTS5 has it.
_SATURATION: Final = 1.2
_LENGTH_PENALTY: Final = 0.75
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
        rarity = max(np.log((count - len(rows) + 0.5) / (len(rows) + 0.5)), _LEAST_RARITY)
        share = self.points["words"][rows] / mean
        held_back = _SATURATION * (1 - _LENGTH_PENALTY + _LENGTH_PENALTY * share)
        worth = rarity * times * (_SATURATION + 1) / (times + held_back)
        postings = Postings(rows.astype(np.int32), worth.astype(np.float32))
        if is_current:
            if sum(len(each.rows) for each in self._terms.values()) > _MAX_POSTINGS:
                self._terms.clear()
            self._terms[term] = postings
        return postings

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
