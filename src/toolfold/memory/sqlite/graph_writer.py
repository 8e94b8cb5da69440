"""Write a knowledge graph into a SQLite file, inside of a transaction."""

import sqlite3
from collections.abc import Iterable, Sequence

from toolfold.errors import NotFound
from toolfold.memory.graph.mentioning import spoken
from toolfold.memory.graph.models import Entity, Relation, Subgraph
from toolfold.memory.graph.store import Merged, Observed, Place
from toolfold.memory.sqlite.graph_index import index, make_indexes, unindex
from toolfold.memory.sqlite.graph_rows import Stored, graph_id, named, stored, text_of

_SAME_RELATION = "graph = ? AND source = ? AND target = ? AND type = ?"


class GraphWriter:
    """Writes the graph of one namespace within one transaction."""

    def __init__(self, connection: sqlite3.Connection, namespace: str) -> None:
        self._connection = connection
        found = graph_id(connection, namespace)
        self._graph = self._make(namespace) if found is None else found

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
            lacking = self._lacking(known[name][:1], observations)
            self._observe(known[name][0], lacking)
            added.append(lacking)
        return added

    def merge(self, graph: Subgraph) -> Merged:
        """See `GraphStore.merge`."""
        known = named(self._connection, self._graph, (entity.name for entity in graph.entities))
        observations = 0
        for entity in graph.entities:
            if entity.name in known:
                told = dict.fromkeys(entity.observations)
                lacking = self._lacking(known[entity.name], told)
                self._observe(known[entity.name][0], lacking)
                observations += len(lacking)
        entities = self.add_entities([each for each in graph.entities if each.name not in known])
        relations = self.add_relations(graph.relations)
        return Merged(len(entities), observations, len(relations))

    def delete_entities(self, names: Sequence[str]) -> None:
        """See `GraphStore.delete_entities`."""
        for numbers in named(self._connection, self._graph, names).values():
            for number in numbers:
                self._delete_texts("entity = ?", (number,))
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
            for text in set(observations) if name in known else ():
                self._delete_texts(
                    "entity = ? AND text = ? AND place = 'observation'",
                    (known[name][0], stored(text)),
                )

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
        number = self._next_number()
        self._add_text(number, "name", entity.name)
        self._add_text(number, "type", entity.entity_type)
        self._observe(number, entity.observations)

    def _next_number(self) -> int:
        """Return the number that the text gets which is added next."""
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'graph_texts'"
        ).fetchone()
        return 1 if row is None else row[0] + 1

    def _observe(self, entity: int, observations: Iterable[str]) -> None:
        for observation in observations:
            self._add_text(entity, "observation", observation)

    def _add_text(self, entity: int, place: Place, text: str) -> None:
        phrase = spoken(text) if place == "name" else None
        made = self._connection.execute(
            "INSERT INTO graph_texts (graph, entity, place, text, spoken) VALUES (?, ?, ?, ?, ?)",
            (self._graph, entity, place, stored(text), phrase),
        )
        index(self._connection, self._graph, made.lastrowid or 0, text)

    def _delete_texts(self, condition: str, values: tuple[int | Stored, ...]) -> None:
        rows = self._connection.execute(
            f"SELECT number, text FROM graph_texts WHERE {condition}", values
        ).fetchall()
        for number, text in rows:
            unindex(self._connection, self._graph, number, text_of(text))
            self._connection.execute("DELETE FROM graph_texts WHERE number = ?", (number,))

    def _lacking(self, entities: Sequence[int], observations: Iterable[str]) -> tuple[str, ...]:
        """Return those observations that none of these entities has."""
        return tuple(
            text for text in observations if not any(self._observed(e, text) for e in entities)
        )

    def _observed(self, entity: int, text: str) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM graph_texts WHERE entity = ? AND text = ? AND place = 'observation'",
            (entity, stored(text)),
        )
        return found.fetchone() is not None

    def _has(self, relation: Relation) -> bool:
        found = self._connection.execute(
            f"SELECT 1 FROM graph_relations WHERE {_SAME_RELATION}", self._row(relation)
        )
        return found.fetchone() is not None

    def _row(self, relation: Relation) -> tuple[int | Stored, ...]:
        return self._graph, *map(stored, relation)
