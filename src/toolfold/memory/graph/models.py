"""Entities and relations, and the small forms in which they are shown. Standard library only."""

from collections.abc import Callable
from typing import Final, NamedTuple

from toolfold.errors import count
from toolfold.memory.models import preview

_SHOWN_FAULTS: Final = 10


class Entity(NamedTuple):
    """Something that has a name, and what was observed of it, in the order of its telling."""

    name: str
    entity_type: str
    observations: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return _line(self)


class Relation(NamedTuple):
    """That one thing has to do with another. Its ends are names; there need be no such entity."""

    source: str
    target: str
    relation_type: str

    def __repr__(self) -> str:
        return f"{self.source} -{self.relation_type}-> {self.target}"


class Subgraph(NamedTuple):
    """Entities and relations, each in the order in which they were made."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


class RankedEntity(NamedTuple):
    """An entity that was searched for; its score is from 0 to 1."""

    name: str
    entity_type: str
    observations: tuple[str, ...]
    score: float

    def __repr__(self) -> str:
        return f"{self.score:.2f} {_line(Entity(*self[:3]))}"


class GraphSearchResult(NamedTuple):
    """The best matches, best first; `total` counts all there are."""

    entities: tuple[RankedEntity, ...]
    total: int
    query: str

    def __repr__(self) -> str:
        if not self.total:
            return f"No entities for {self.query!r}."
        heading = (
            f"{len(self.entities)} of {count(self.total, 'entity', 'entities')} for {self.query!r}:"
        )
        return "\n".join([heading, *map(repr, self.entities)])


class Neighbor(NamedTuple):
    """What is related to a thing, and by which relation it was reached first."""

    name: str
    entity_type: str | None
    """None: relations name it, and no entity has that name."""

    distance: int
    via: Relation

    def __repr__(self) -> str:
        kind = "no entity" if self.entity_type is None else self.entity_type
        return f"{self.distance} {self.name} ({kind}): {self.via!r}"


class Neighbors(NamedTuple):
    """What is around a thing, nearest first; `total` counts all within that distance."""

    name: str
    neighbors: tuple[Neighbor, ...]
    total: int

    def __repr__(self) -> str:
        if not self.total:
            return f"Nothing is related to {self.name!r}."
        heading = f"{len(self.neighbors)} of {self.total} around {self.name!r}:"
        return "\n".join([heading, *map(repr, self.neighbors)])


class GraphPath(NamedTuple):
    """A shortest way between two things: one name more than relations, or neither if there is none.

    A relation is gone along in either direction, so it may point backwards.
    """

    source: str
    target: str
    names: tuple[str, ...]
    relations: tuple[Relation, ...]

    def __repr__(self) -> str:
        if not self.names:
            return f"No path leads from {self.source!r} to {self.target!r}."
        return "\n".join([" … ".join(self.names), *map(repr, self.relations)])


class Fault(NamedTuple):
    """A line or row that could not be imported, counted from 1, and why; 0 is the whole file."""

    line: int
    reason: str

    def __repr__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


class ImportReport(NamedTuple):
    """What came in that was not there before, and the lines that could not."""

    entities: int
    observations: int
    """That entities got which were there already."""

    relations: int
    faults: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        entities = count(self.entities, "entity", "entities")
        made = f"{entities} and {count(self.relations, 'relation')} are new"
        known = f"{count(self.observations, 'observation')} added to known entities"
        shown = [repr(fault) for fault in self.faults[:_SHOWN_FAULTS]]
        if len(self.faults) > _SHOWN_FAULTS:
            shown.append(f"and {count(len(self.faults) - _SHOWN_FAULTS, 'more line')}")
        left_out = f" {count(len(self.faults), 'line')} left out:" if shown else ""
        return "\n".join([f"{made}, {known}.{left_out}", *shown])


def _line(entity: Entity) -> str:
    said = f": {preview('; '.join(entity.observations))}" if entity.observations else ""
    return f"{entity.name} ({entity.entity_type}){said}"


# Whether a text contains a query as server-memory sees it: by JavaScript's lower case.
#
# Python's lower case is the same for every character that Python knows; Unicode 14 is enough for
# all but 55 letters.


def contains(query: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains a query, whatever the case of both."""
    needle = query.lower()
    if not has_halves(needle):
        return lambda text: needle in text.lower()
    units = _units(needle)
    return lambda text: units in _units(text.lower())


def has_halves(text: str) -> bool:
    """Tell whether a text holds a half of a surrogate pair, as JavaScript's may."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def whole(text: str) -> str:
    """Return a text in which halves that belong together are one character."""
    if not has_halves(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def writable(text: str) -> str:
    """Return a text of the same length that any index takes, with U+FFFD for what it would not."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not has_halves(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _units(text: str) -> str:
    """Return a text with each UTF-16 code unit as a character: a half is found in a whole."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    return "".join(
        chr(low | high << 8) for low, high in zip(encoded[::2], encoded[1::2], strict=True)
    )
