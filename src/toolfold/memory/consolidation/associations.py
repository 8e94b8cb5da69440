"""Find notes that have to do with each other, and are not the same. Pure.

The strength of a pair is how near they are in meaning, plus a little for each rare word and rare
tag that they share. Each note is associated with the few that are strongest for both sides, so that
a note that is near to everything does not become the centre of the world. Parts of one conversation
or document are not associated: they are each other's context already.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.embedding import UNRELATED, nearness
from toolfold.memory.consolidation.models import Comparison
from toolfold.memory.consolidation.study import StudiedNote

Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
Tick: TypeAlias = Callable[[int, int], None]
"""Told how much is done, and of how much."""

MAX_NEIGHBOURS: Final = 50
"""Of each note; of more, the nearest count."""

_BLOCK_ROWS: Final = 1_024
_BLOCK_COLUMNS: Final = 8_192
_HEAD_BYTES: Final = 4
_DECIMALS: Final = 4


class NoteVectors(NamedTuple):
    """Of each note a row of whole numbers and their scale; zeros where there is no vector."""

    levels: NDArray[np.int8]
    scales: Floats


class NearbyPairs(NamedTuple):
    """Pairs of rows and how near they are, each pair both ways; by row, and then nearest first."""

    rows: Rows
    columns: Rows
    nearness: Floats


def read_vectors(blobs: Sequence[bytes | None]) -> NoteVectors:
    """Return vectors as `embedding.quantize` wrote them. An odd one counts as none."""
    size = max((len(blob) for blob in blobs if blob), default=_HEAD_BYTES)
    empty = bytes(size)
    joined = b"".join(blob if blob and len(blob) == size else empty for blob in blobs)
    layout = np.dtype([("scale", "<f4"), ("levels", "i1", (size - _HEAD_BYTES,))])
    table = np.frombuffer(joined, layout)
    return NoteVectors(np.ascontiguousarray(table["levels"]), table["scale"].astype(np.float32))


def find_nearby(vectors: NoteVectors, *, least: float, tick: Tick) -> NearbyPairs:
    """Return for each row its nearest others, of those at least so near.

    Memory is bounded by the blocks and by `MOST_NEIGHBOURS`. Sums of products of whole numbers are
    exact in any order, so the same vectors give the same answer on any machine.
    """
    count = len(vectors.scales)
    found = []
    for start in range(0, count, _BLOCK_ROWS):
        tick(start, count)
        found.append(_nearby_block(vectors, start, min(start + _BLOCK_ROWS, count), least))
    tick(count, count)
    if not found:
        none = np.zeros(0, np.int64)
        return NearbyPairs(none, none, np.zeros(0, np.float32))
    return NearbyPairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def nearness_of(vectors: NoteVectors, left: Rows, right: Rows) -> Floats:
    """Return how near these pairs are."""
    found = np.empty(len(left), np.float32)
    for start in range(0, len(left), _BLOCK_COLUMNS):
        some = slice(start, start + _BLOCK_COLUMNS)
        a, b = vectors.levels[left[some]], vectors.levels[right[some]]
        products = np.einsum("ij,ij->i", a.astype(np.float32), b.astype(np.float32))
        found[some] = products * vectors.scales[left[some]] * vectors.scales[right[some]]
    return np.round(nearness(found), _DECIMALS)


def _nearby_block(vectors: NoteVectors, start: int, stop: int, least: float) -> NearbyPairs:
    levels = vectors.levels[start:stop].astype(np.float32)
    best = NearbyPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    for begin in range(0, len(vectors.scales), _BLOCK_COLUMNS):
        end = begin + _BLOCK_COLUMNS
        product = levels @ vectors.levels[begin:end].astype(np.float32).T
        product *= vectors.scales[start:stop, np.newaxis]
        product *= vectors.scales[begin:end]
        at = np.flatnonzero(product >= UNRELATED + least * (1 - UNRELATED))
        rows, columns = np.divmod(at, product.shape[1])
        found = np.round(nearness(product.ravel()[at]), _DECIMALS)
        rows, columns = rows + start, columns + begin
        is_other = rows != columns
        best = _nearest(
            NearbyPairs(
                np.concatenate([best.rows, rows[is_other]]),
                np.concatenate([best.columns, columns[is_other]]),
                np.concatenate([best.nearness, found[is_other]]),
            )
        )
    return best


def _nearest(found: NearbyPairs) -> NearbyPairs:
    """Return them in order, and of each row no more than the nearest."""
    order = np.lexsort((found.columns, -found.nearness, found.rows))
    rows = found.rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = order[place < MAX_NEIGHBOURS]
    return NearbyPairs(found.rows[kept], found.columns[kept], found.nearness[kept])


_WORD_STRENGTH: Final = 0.08
_TAG_STRENGTH: Final = 0.05
_MAX_SHARED: Final = 3

# Words that pairs share say something only if the pair is about something common at all.
_LEAST_NEARNESS: Final = 0.3

_RAREST_SHARE: Final = 50
_FEWEST_FOR_RARE: Final = 2
_MAX_FOR_RARE: Final = 8


class Pair(NamedTuple):
    """Two rows, the lower first, and why they belong together."""

    row: int
    other: int
    strength: float
    nearness: float
    shared: tuple[str, ...]
    """Rare words and tags of both."""


def find_associations(
    notes: Sequence[StudiedNote], vectors: NoteVectors, nearby: NearbyPairs, comparing: Comparison
) -> list[Pair]:
    """Return the pairs that belong together, strongest first, linked already or not."""
    rare = _rare(notes)
    pairs = _candidates(notes, nearby, rare)
    near = nearness_of(vectors, pairs[:, 0], pairs[:, 1])
    pairs, near = pairs[near >= _LEAST_NEARNESS], near[near >= _LEAST_NEARNESS]
    found = [
        _pair(notes, rare, row, other, nearness)
        for (row, other), nearness in zip(pairs.tolist(), near.tolist(), strict=True)
        if notes[row].occasion != notes[other].occasion
    ]
    strong = [pair for pair in found if pair.strength >= comparing.least_strength]
    strong.sort(key=lambda pair: (-pair.strength, pair.row, pair.other))
    return _mutual(strong, comparing.links_per_note)


def _rare(notes: Sequence[StudiedNote]) -> dict[str, list[int]]:
    """Return the words and tags that few notes have, with the rows that have them."""
    rows: dict[str, list[int]] = {}
    for row, note in enumerate(notes):
        for item in items(note):
            rows.setdefault(item, []).append(row)
    most = min(max(len(notes) // _RAREST_SHARE, _FEWEST_FOR_RARE), _MAX_FOR_RARE)
    return {item: found for item, found in rows.items() if _FEWEST_FOR_RARE <= len(found) <= most}


def items(note: StudiedNote) -> Iterable[str]:
    """Return the words of a note, and its tags as `#tag`."""
    yield from note.words
    for tag in note.tags:
        yield f"#{tag}"


def _candidates(
    notes: Sequence[StudiedNote], nearby: NearbyPairs, rare: dict[str, list[int]]
) -> Rows:
    """Return the pairs that are near or share something rare, each once, the lower row first."""
    count = max(len(notes), 1)
    forward = nearby.rows < nearby.columns
    backward = ~forward
    codes = array("q")
    for rows in rare.values():
        for place, row in enumerate(rows):
            codes.extend(row * count + other for other in rows[place + 1 :])
    every = np.concatenate(
        [
            nearby.rows[forward] * count + nearby.columns[forward],
            nearby.columns[backward] * count + nearby.rows[backward],
            np.array(codes, np.int64),
        ]
    )
    return np.stack(np.divmod(np.unique(every), count), axis=1)


def _pair(
    notes: Sequence[StudiedNote], rare: dict[str, list[int]], row: int, other: int, nearness: float
) -> Pair:
    theirs = set(items(notes[other]))
    shared = [item for item in items(notes[row]) if item in theirs and item in rare]
    tags = [item for item in shared if item.startswith("#")]
    words = [item for item in shared if not item.startswith("#")]
    strength = nearness + _WORD_STRENGTH * min(len(words), _MAX_SHARED)
    strength += _TAG_STRENGTH * min(len(tags), _MAX_SHARED)
    return Pair(row, other, round(strength, 4), round(nearness, 4), tuple(sorted(shared)))


def _mutual(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """Return those pairs, of strongest first, that are among the strongest of both their rows."""
    places: dict[int, int] = {}
    kept = []
    for pair in pairs:
        both = pair.row, pair.other
        if all(places.get(row, 0) < most for row in both):
            kept.append(pair)
        for row in both:
            places[row] = places.get(row, 0) + 1
    return kept


# Find what many notes speak of together. Pure.
#
# A pattern is a word or a tag, and others that stand with it in the same notes far more often
# than by chance. Its confidence is that of the rule of succession: of n notes on the first k
# speak of the other too, so the next one does with (k + 1) / (n + 2). Notes of one conversation
# or document do not make a pattern among themselves.

_Rows: TypeAlias = NDArray[np.int64]

MAX_PATTERNS: Final = 50
LEAST_CONFIDENCE: Final = 0.5

# How much more often than by chance.
_LEAST_LIFT: Final = 3.0
_MAX_ITEMS: Final = 4_000
# What so many notes speak of is no news.
_MAX_ROWS: Final = 2_000
_FEWEST_CHARS: Final = 3
_MAX_NAMES: Final = 6
_SAME_NOTES_SHARE: Final = 0.5


class FoundPattern(NamedTuple):
    """Things that come together, and the rows that speak of them."""

    items: tuple[str, ...]
    """The first one, and what comes with it."""

    confidence: float
    of: int
    """How many notes speak of the first."""

    rows: tuple[int, ...]
    """Those that speak of the first and the second."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Which notes have which of the items that come into question."""

    names: list[str]
    by_item: list[_Rows]
    by_row: list[list[int]]


class _Rule(NamedTuple):
    first: int
    second: int
    worth: float


def find_patterns(notes: Sequence[StudiedNote], *, fewest: int) -> list[FoundPattern]:
    """Return what comes together on at least that many occasions, the most telling first."""
    table = _table(notes, fewest)
    rules = [rule for item in range(len(table.names)) for rule in _rules(table, item, fewest)]
    rules.sort(key=lambda rule: (-rule.worth, table.names[rule.first], table.names[rule.second]))
    found: list[FoundPattern] = []
    for rule in rules:
        pattern = _pattern(table, rule)
        if len({notes[row].occasion for row in pattern.rows}) >= fewest:
            _take(found, pattern)
        if len(found) > MAX_PATTERNS:
            break
    return found[:MAX_PATTERNS]


def _table(notes: Sequence[StudiedNote], fewest: int) -> _Table:
    rows: dict[str, list[int]] = {}
    for row, note in enumerate(notes):
        for item in items(note):
            if len(item.lstrip("#")) >= _FEWEST_CHARS:
                rows.setdefault(item, []).append(row)
    telling = [item for item, found in rows.items() if fewest <= len(found) <= _MAX_ROWS]
    telling.sort(key=lambda item: (-len(rows[item]), item))
    names = sorted(telling[:_MAX_ITEMS])
    by_row: list[list[int]] = [[] for _ in notes]
    for number, item in enumerate(names):
        for row in rows[item]:
            by_row[row].append(number)
    return _Table(names, [np.array(rows[item], np.int64) for item in names], by_row)


def _rules(table: _Table, item: int, fewest: int) -> list[_Rule]:
    """Return what comes with one item."""
    beside = [other for row in table.by_item[item].tolist() for other in table.by_row[row]]
    times = np.bincount(np.array(beside, np.int64), minlength=len(table.names))
    of = len(table.by_item[item])
    rules = []
    for other in np.flatnonzero(times >= fewest).tolist():
        both, others = int(times[other]), len(table.by_item[other])
        lift = both * len(table.by_row) / (of * others)
        is_first = (of, item) < (others, other)  # the rarer one says more of the other
        if is_first and _confidence(both, of) >= LEAST_CONFIDENCE and lift >= _LEAST_LIFT:
            rules.append(_Rule(item, other, round(both * float(np.log(lift)), 6)))
    return rules


def _pattern(table: _Table, rule: _Rule) -> FoundPattern:
    first, second = table.by_item[rule.first], table.by_item[rule.second]
    rows = np.intersect1d(first, second).tolist()
    names = (table.names[rule.first], table.names[rule.second])
    return FoundPattern(names, _confidence(len(rows), len(first)), len(first), tuple(rows))


def _take(found: list[FoundPattern], pattern: FoundPattern) -> None:
    """Add a pattern, or its names to one that stands on much the same notes."""
    rows = set(pattern.rows)
    for place, other in enumerate(found):
        common = len(rows & set(other.rows))
        if common >= _SAME_NOTES_SHARE * min(len(rows), len(other.rows)):
            names = tuple(dict.fromkeys((*other.items, *pattern.items)))
            found[place] = other._replace(items=names[:_MAX_NAMES])
            return
    found.append(pattern)


def _confidence(both: int, of: int) -> float:
    return round((both + 1) / (of + 2), 4)
