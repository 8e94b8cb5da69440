"""Order entities by where the words of a query stand in them. Pure.

The score of an entity, from 0 to 1, is the share of the query that it answers. A word counts the
more the fewer entities have it; it counts nearly whole in a name, more so in a short one, half in a
type, and less in an observation.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from toolfold.memory.graph.mentions import words_of
from toolfold.memory.graph.store import MatchField, WordHit

_WORTH: Final[Mapping[MatchField, float]] = {"name": 0.8, "type": 0.5, "observation": 0.4}
_SHARE_OF_NAME: Final = 0.2
_DECIMALS: Final = 6


class Score(NamedTuple):
    """The key of an entity, and what it is worth."""

    key: int
    score: float


def rank(hits: Sequence[Sequence[WordHit]], *, count: int) -> list[Score]:
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
