"""Go along relations: what is around a thing, and the shortest way between two."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from toolfold.memory.graph.models import Relation

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
