"""Find notes that have to do with each other, and are not the same. Pure.

The strength of a pair is how near they are in meaning, plus a little for each rare word and rare
tag that they share. Each note is associated with the few that are strongest for both sides, so that
a note that is near to everything does not become the centre of the world. Parts of one conversation
or document are not associated: they are each other's context already.
"""

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from toolfold.memory.consolidation.similarity import NearbyPairs, NoteVectors, Rows, nearness_of
from toolfold.memory.consolidation.strategies import Comparison
from toolfold.memory.consolidation.study import StudiedNote

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
