"""Find the notes that mention an entity, rank entities, and go along relations."""

import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from toolfold.memory.graph.encoding import MatchField, WordHit
from toolfold.memory.graph.models import Relation, writable
from toolfold.memory.models import CompactMemory, CompactSearchResult, preview, shown
from toolfold.memory.ranking.rank import rank
from toolfold.memory.store import Query, Store

MAX_NAME_WORDS: Final = 8
MAX_TEXT_WORDS: Final = 10_000

# `Ada_Lovelace` is how many name their entities, and `Ada Lovelace` how notes write it.
_WORD: Final = re.compile(r"[^\W_]+")


def spoken(name: str) -> str | None:
    """Return how a name stands in a text: its words in lower case, with one space between.

    None if it has no words, or so many that nobody would repeat it.
    """
    words = words_of(name)
    return " ".join(words) if 0 < len(words) <= MAX_NAME_WORDS else None


def phrases(text: str) -> list[str]:
    """Return all that a name that is mentioned in a text may be spoken like, in order, each once.

    Of a long text only the beginning counts.
    """
    words = words_of(text)[:MAX_TEXT_WORDS]
    found = {
        " ".join(words[start : start + length]): None
        for start in range(len(words))
        for length in range(1, min(MAX_NAME_WORDS, len(words) - start) + 1)
    }
    return list(found)


def is_mentioned(phrase: str, text: str) -> bool:
    """Tell whether a text mentions what is spoken so."""
    return f" {phrase} " in f" {' '.join(words_of(text))} "


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(writable(text).lower())


_DEPTH: Final = 1_000


async def find_mentions(
    notes: Store, namespace: str, name: str, *, limit: int, now: float
) -> CompactSearchResult:
    """Return the notes that mention a name, best first; `total` counts all that were found.

    Notes are found by the words of the name, and read: only those count that have all of them in a
    row. A name without words is mentioned nowhere.

    Raises:
        StoreError: The store does not answer.
    """
    words = words_of(name)
    if not words:
        return CompactSearchResult((), 0, name)
    asked = Query(text=" ".join(words), vector=None)
    matches = await notes.search(namespace, asked, depth=_DEPTH)
    hits = rank(matches.lists, created=matches.created, quality=matches.quality, now=now)
    loaded = await notes.load(namespace, [hit.key for hit in hits])
    found = [
        (loaded[hit.key], hit.score)
        for hit in hits
        if hit.key in loaded and is_mentioned(" ".join(words), loaded[hit.key].content)
    ]
    compact = tuple(
        CompactMemory(shown(note.hash), preview(note.content), note.tags, note.created, score)
        for note, score in found[:limit]
    )
    return CompactSearchResult(compact, len(found), name)


RelationsOf: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Relation]]]
"""Returns all relations that begin or end at one of these names, in the order of making."""


class PathStep(NamedTuple):
    """How a name was reached first: how far it is, from which name, and by which relation."""

    distance: int
    before: str
    via: Relation


async def around(name: str, relations_of: RelationsOf, *, depth: int) -> dict[str, PathStep]:
    """Return how every name within `depth` relations was reached, nearest first.

    Relations lead both ways. Equally near names come in the order in which relations were made.
    """
    side = _Side(name)
    for _ in range(depth):
        if not side.edge:
            break
        await side.widen(relations_of)
    return side.steps


async def shortest(
    source: str, target: str, relations_of: RelationsOf
) -> tuple[list[str], list[Relation]] | None:
    """Return the names and the relations of a shortest way, None where there is none.

    It is searched from both ends, so that a small world is not gone through for near things.
    """
    if source == target:
        return [source], []
    here, there = _Side(source), _Side(target)
    while here.edge and there.edge:
        near, far = (here, there) if len(here.edge) <= len(there.edge) else (there, here)
        await near.widen(relations_of)
        meeting = [name for name in near.edge if far.has(name)]
        if meeting:
            return _joined(here, there, min(meeting, key=far.distance))
    return None


class _Side:
    """What was reached from one end, and the names from which to go on."""

    def __init__(self, start: str) -> None:
        self._start = start
        self.steps: dict[str, PathStep] = {}
        self.edge = [start]

    def has(self, name: str) -> bool:
        return name == self._start or name in self.steps

    def distance(self, name: str) -> int:
        return 0 if name == self._start else self.steps[name].distance

    async def widen(self, relations_of: RelationsOf) -> None:
        """Go one relation further in every direction."""
        edge, distance = set(self.edge), self.distance(self.edge[0]) + 1
        self.edge = []
        for relation in await relations_of(sorted(edge)):
            for before, name in _directions(relation):
                if before in edge and not self.has(name):
                    self.steps[name] = PathStep(distance, before, relation)
                    self.edge.append(name)

    def way_from(self, name: str) -> Iterator[tuple[str, Relation]]:
        """Give the names and relations that lead back to the start."""
        while name != self._start:
            step = self.steps[name]
            yield step.before, step.via
            name = step.before


def _directions(relation: Relation) -> tuple[tuple[str, str], tuple[str, str]]:
    return (relation.source, relation.target), (relation.target, relation.source)


def _joined(here: _Side, there: _Side, meeting: str) -> tuple[list[str], list[Relation]]:
    back, on = list(here.way_from(meeting)), list(there.way_from(meeting))
    names = [*(name for name, _ in reversed(back)), meeting, *(name for name, _ in on)]
    return names, [*(via for _, via in reversed(back)), *(via for _, via in on)]


# Order entities by where the words of a query stand in them. Pure.
#
# The score of an entity, from 0 to 1, is the share of the query that it answers. A word counts
# the more the fewer entities have it; it counts nearly whole in a name, more so in a short one,
# half in a type, and less in an observation.

_WORTH: Final[Mapping[MatchField, float]] = {"name": 0.8, "type": 0.5, "observation": 0.4}
_SHARE_OF_NAME: Final = 0.2
_DECIMALS: Final = 6


class Score(NamedTuple):
    """The key of an entity, and what it is worth."""

    key: int
    score: float


def rank_entities(hits: Sequence[Sequence[WordHit]], *, count: int) -> list[Score]:
    """Return every entity that a word was found in, best first; equals in the order of making.

    `hits` are those of each word of the query, `count` is how many entities there are.
    """
    weights = [_weight(len({hit.key for hit in found}), count) for found in hits]
    points: dict[int, float] = {}
    for weight, found in zip(weights, hits, strict=True):
        for key, worth in _best(found).items():
            points[key] = points.get(key, 0.0) + weight * worth
    _add_share_of_name(points, hits, weights)
    whole = sum(weights)
    scores = [Score(key, round(worth / whole, _DECIMALS)) for key, worth in points.items()]
    return sorted(scores, key=lambda each: (-each.score, each.key))


def _weight(having: int, count: int) -> float:
    return math.log(1 + (count + 1) / (having + 1))


def _best(hits: Sequence[WordHit]) -> dict[int, float]:
    best: dict[int, float] = {}
    for hit in hits:
        best[hit.key] = max(best.get(hit.key, 0.0), _WORTH[hit.place])
    return best


def _add_share_of_name(
    points: dict[int, float], hits: Sequence[Sequence[WordHit]], weights: Sequence[float]
) -> None:
    """Prefer names that say little beside the query: `Ada` to `Ada Lovelace's mother`."""
    named: dict[tuple[int, str], list[float]] = {}
    for weight, found in zip(weights, hits, strict=True):
        for entity in {(hit.key, hit.name) for hit in found if hit.place == "name"}:
            named.setdefault(entity, []).append(weight)
    for (key, name), counted in named.items():
        share = min(1.0, len(counted) / max(1, len(words_of(name))))
        points[key] += _SHARE_OF_NAME * share * sum(counted)
