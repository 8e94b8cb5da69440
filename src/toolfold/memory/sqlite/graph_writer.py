"""Write a knowledge graph into a SQLite file, inside of a transaction."""

import sqlite3
from collections.abc import Sequence, Set

from toolfold.errors import NotFound
from toolfold.memory.graph.encoding import packed, unpacked
from toolfold.memory.graph.mentions import spoken
from toolfold.memory.graph.models import Entity, Relation, Subgraph
from toolfold.memory.graph.store import Merged, Observed
from toolfold.memory.sqlite.graph_index import Indexer, make_indexes
from toolfold.memory.sqlite.graph_rows import (
    Part,
    Stored,
    graph_id,
    named,
    parts_of,
    parts_saying,
    stored,
)

_SAME_RELATION = "graph = ? AND source = ? AND target = ? AND type = ?"


class GraphWriter:
    """Writes the graph of one namespace within one transaction."""

    def __init__(self, connection: sqlite3.Connection, namespace: str) -> None:
        self._connection = connection
        found = graph_id(connection, namespace)
        self._graph = self._make(namespace) if found is None else found
        self._index = Indexer(connection, self._graph)
        self._changes = connection.total_changes

    def finish(self) -> None:
        """Let others see that something was written, if it was."""
        if self._connection.total_changes > self._changes:
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
        for name in map(stored, set(names)):
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
        made = self._connection.execute("INSERT INTO graphs (namespace) VALUES (?)", (namespace,))
        number = made.lastrowid or 0
        make_indexes(self._connection, number)
        return number

    def _insert(self, entity: Entity) -> None:
        name, kind, observations = entity
        number = self._next_number()
        self._connection.execute(
            "INSERT INTO graph_parts (number, graph, entity, name, type, spoken, observations) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(number, self._graph, number, stored(name), stored(kind), spoken(name)),
                packed(observations),
            ),
        )
        self._index.add(number, name, kind, observations)

    def _next_number(self) -> int:
        """Return the number of the part that is added next: one of an entity names itself."""
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'graph_parts'"
        ).fetchone()
        return 1 if row is None else row[0] + 1

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
            made = self._connection.execute(
                "INSERT INTO graph_parts (graph, entity, observations) VALUES (?, ?, ?)",
                (self._graph, entities[0], packed(lacking)),
            )
            self._index.add(made.lastrowid or 0, "", "", lacking)
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
        self._index.remove(part.number, name, kind, told)
        self._connection.execute(
            "UPDATE graph_parts SET observations = ? WHERE number = ?", (packed(kept), part.number)
        )
        self._index.add(part.number, name, kind, kept)

    def _delete(self, part: Part) -> None:
        self._index.remove(part.number, *part.texts())
        self._connection.execute("DELETE FROM graph_parts WHERE number = ?", (part.number,))

    def _has(self, relation: Relation) -> bool:
        found = self._connection.execute(
            f"SELECT 1 FROM graph_relations WHERE {_SAME_RELATION}", self._row(relation)
        )
        return found.fetchone() is not None

    def _row(self, relation: Relation) -> tuple[int | Stored, ...]:
        return self._graph, *map(stored, relation)
