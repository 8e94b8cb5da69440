"""The GraphStore protocol: what keeps a knowledge graph, whichever database it is.

As with notes, every method may be called by any number of tasks at once, whatever a method has
returned from is kept, and namespaces do not see each other in any way.

Two entities may have the same name, and two relations be equal: whoever adds both in one call gets
both. Texts may hold any character, NUL and halves of surrogate pairs included.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from toolfold.memory.graph.encoding import Encoded
from toolfold.memory.graph.models import Entity, Relation, Subgraph

MatchField: TypeAlias = Literal["name", "type", "observation"]


class Observed(NamedTuple):
    """Observations of the first entity that has that name."""

    name: str
    observations: tuple[str, ...]


class WordHit(NamedTuple):
    """That a word stands in an entity, and where."""

    key: int
    """Of the entity; keys grow in the order of making."""

    place: MatchField
    name: str
    """Of the entity, if that is where it stands."""


class Merged(NamedTuple):
    """How much was new."""

    entities: int
    observations: int
    relations: int


class GraphStore(Protocol):
    """Keeps a knowledge graph for each namespace.

    A write costs what is written, however large the graph is. Every method raises `StoreError` when
    the database does not answer or does not take a write; nothing has changed then.
    """

    async def add_entities(self, namespace: str, entities: Sequence[Entity]) -> list[Entity]:
        """Keep those whose names were not there before this call, and return them."""

    async def add_relations(self, namespace: str, relations: Sequence[Relation]) -> list[Relation]:
        """Keep those that were not there before this call, and return them."""

    async def add_observations(
        self, namespace: str, observed: Sequence[Observed]
    ) -> list[tuple[str, ...]]:
        """Keep, one after the other, what each entity lacked before its turn, and return that.

        Raises:
            NotFound: There is no such entity; nothing is kept of the others either.
        """

    async def merge(self, namespace: str, graph: Subgraph) -> Merged:
        """Keep what is not there yet.

        An entity whose name was there before this call gives the observations that none of that
        name has to the first of them; its type does not count.
        """

    async def delete_entities(self, namespace: str, names: Sequence[str]) -> None:
        """Delete all entities of these names, and all relations that begin or end there."""

    async def delete_observations(self, namespace: str, observed: Sequence[Observed]) -> None:
        """Delete observations, however often they are there."""

    async def delete_relations(self, namespace: str, relations: Sequence[Relation]) -> None:
        """Delete relations, however often they are there."""

    async def changed(self, namespace: str) -> int:
        """Return a number that grows whenever something is written; 0 for what never was."""

    async def read(self, namespace: str) -> Encoded:
        """Return everything."""

    async def open(self, namespace: str, names: Sequence[str]) -> Encoded:
        """Return all entities of these names, and all relations that begin or end at one."""

    async def containing(self, namespace: str, query: str) -> Encoded:
        """Return entities with a text that contains the query, and all relations that touch them.

        Texts are names, types and observations; case is told apart as by `matching.contains`.
        """

    async def word_hits(self, namespace: str, words: Sequence[str]) -> list[list[WordHit]]:
        """Return for each word where it stands, in this form or another of the same stem."""

    async def load(self, namespace: str, keys: Sequence[int]) -> dict[int, Entity]:
        """Return entities by their keys, without those deleted since."""

    async def count(self, namespace: str) -> int:
        """Return how many entities there are."""

    async def relations_of(self, namespace: str, names: Sequence[str]) -> list[Relation]:
        """Return all relations that begin or end at one of these names, each once, in order."""

    async def types_of(self, namespace: str, names: Sequence[str]) -> Mapping[str, str]:
        """Return the type of the first entity of each name, where there is one."""

    async def spoken(self, namespace: str, phrases: Sequence[str]) -> dict[str, list[Entity]]:
        """Return the entities whose names are spoken so, see `mentioning.spoken`, by phrase."""
