"""Write a knowledge graph into memory's tables, inside of a transaction."""

from collections.abc import Sequence, Set

from toolfold.errors import NotFound
from toolfold.memory.graph.encoding import Merged, Observed, packed, unpacked
from toolfold.memory.graph.mentions import spoken
from toolfold.memory.graph.models import Entity, Relation, Subgraph
from toolfold.memory.sql.connection import SqlConnection, Stored
from toolfold.memory.sql.graph_rows import (
    Part,
    graph_id,
    named,
    parts_of,
    parts_saying,
)

_SAME_RELATION = "graph = ? AND source = ? AND target = ? AND type = ?"


class GraphWriter:
    """Writes the graph of one namespace within one transaction."""

    def __init__(self, connection: SqlConnection, namespace: str) -> None:
        self._connection = connection
        found = graph_id(connection, namespace)
        self._graph = self._make(namespace) if found is None else found
        self._changes = connection.written()

    def finish(self) -> None:
        """Let others see that something was written, if it was."""
        if self._connection.written() > self._changes:
            self._connection.execute(
                "UPDATE graphs SET changed = changed + 1 WHERE id = ?", (self._graph,)
            )

    def add_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """See `GraphStore.add_entities`."""
        known = named(self._connection, self._graph, (entity.name for entity in entities))
        added = [entity for entity in entities if entity.name not in known]
        for entity in added:
            self._insert(entity)
        return added

    def add_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """See `GraphStore.add_relations`."""
        known = {relation for relation in set(relations) if self._has(relation)}
        added = [relation for relation in relations if relation not in known]
        self._connection.executemany(
            "INSERT INTO graph_relations (graph, source, target, type) VALUES (?, ?, ?, ?)",
            map(self._row, added),
        )
        return added

    def add_observations(self, observed: Sequence[Observed]) -> list[tuple[str, ...]]:
        """See `GraphStore.add_observations`."""
        known = named(self._connection, self._graph, (each.name for each in observed))
        added = []
        for name, observations in observed:
            if name not in known:
                raise NotFound(f"Entity with name {name} not found")
            added.append(self._observe(known[name][:1], observations))
        return added

    def merge(self, graph: Subgraph) -> Merged:
        """See `GraphStore.merge`."""
        known = named(self._connection, self._graph, (entity.name for entity in graph.entities))
        observations = 0
        for entity in graph.entities:
            if entity.name in known:
                told = tuple(dict.fromkeys(entity.observations))
                observations += len(self._observe(known[entity.name], told))
        entities = self.add_entities([each for each in graph.entities if each.name not in known])
        relations = self.add_relations(graph.relations)
        return Merged(len(entities), observations, len(relations))

    def delete_entities(self, names: Sequence[str]) -> None:
        """See `GraphStore.delete_entities`."""
        for numbers in named(self._connection, self._graph, names).values():
            for number in numbers:
                for part in parts_of(self._connection, self._graph, number):
                    self._delete(part)
        for name in map(self._connection.stored, set(names)):
            for end in ("source", "target"):
                self._connection.execute(
                    f"DELETE FROM graph_relations WHERE graph = ? AND {end} = ?",
                    (self._graph, name),
                )

    def delete_observations(self, observed: Sequence[Observed]) -> None:
        """See `GraphStore.delete_observations`."""
        known = named(self._connection, self._graph, (each.name for each in observed))
        for name, observations in observed:
            if name in known:
                entity, unwanted = known[name][0], set(observations)
                for part in parts_saying(self._connection, self._graph, entity, unwanted):
                    self._take_out(part, unwanted)

    def delete_relations(self, relations: Sequence[Relation]) -> None:
        """See `GraphStore.delete_relations`."""
        self._connection.executemany(
            f"DELETE FROM graph_relations WHERE {_SAME_RELATION}", map(self._row, set(relations))
        )

    def _make(self, namespace: str) -> int:
        [made] = self._connection.execute(
            "INSERT INTO graphs (namespace) VALUES (?) RETURNING id", (namespace,)
        ).fetchone()
        number: int = made
        self._connection.parts.begin(number)
        return number

    def _insert(self, entity: Entity) -> None:
        name, kind, observations = entity
        number, stored = self._connection.next_part(), self._connection.stored
        self._connection.execute(
            "INSERT INTO graph_parts (number, graph, entity, name, type, spoken, observations) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(number, self._graph, number, stored(name), stored(kind), spoken(name)),
                packed(observations),
            ),
        )
        self._connection.parts.add(self._graph, number, (name, kind, observations))

    def _observe(self, entities: Sequence[int], observations: Sequence[str]) -> tuple[str, ...]:
        """Add to the first entity, and return, what none of them has."""
        parts = [
            part.observations
            for entity in entities
            for part in parts_saying(self._connection, self._graph, entity, observations)
        ]
        known = {text for told in unpacked(*parts) for text in told}
        lacking = tuple(text for text in observations if text not in known)
        if lacking:
            number = self._connection.next_part()
            self._connection.execute(
                "INSERT INTO graph_parts (number, graph, entity, observations) VALUES (?, ?, ?, ?)",
                (number, self._graph, entities[0], packed(lacking)),
            )
            self._connection.parts.add(self._graph, number, ("", "", lacking))
        return lacking

    def _take_out(self, part: Part, unwanted: Set[str]) -> None:
        """Rewrite a part without some observations; one that says nothing any more goes."""
        name, kind, told = part.texts()
        kept = [text for text in told if text not in unwanted]
        if len(kept) == len(told):
            return
        if not kept and part.number != part.entity:
            self._delete(part)
            return
        self._connection.parts.remove(self._graph, part.number, (name, kind, told))
        self._connection.execute(
            "UPDATE graph_parts SET observations = ? WHERE number = ?", (packed(kept), part.number)
        )
        self._connection.parts.add(self._graph, part.number, (name, kind, kept))

    def _delete(self, part: Part) -> None:
        self._connection.parts.remove(self._graph, part.number, part.texts())
        self._connection.execute("DELETE FROM graph_parts WHERE number = ?", (part.number,))

    def _has(self, relation: Relation) -> bool:
        found = self._connection.execute(
            f"SELECT 1 FROM graph_relations WHERE {_SAME_RELATION}", self._row(relation)
        )
        return found.fetchone() is not None

    def _row(self, relation: Relation) -> tuple[int | Stored, ...]:
        return self._graph, *map(self._connection.stored, relation)
