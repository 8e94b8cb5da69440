"""Keep knowledge graphs in tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, get_args

from toolfold.memory.graph.encoding import Encoded, MatchField, Merged, Observed, WordHit
from toolfold.memory.graph.models import Entity, Relation, Subgraph
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase
from toolfold.memory.sql.graph_rows import (
    containing,
    graph_id,
    named,
    parts_with,
    read_all,
    read_around,
    read_connected,
    read_entities,
    relations_of,
    spoken,
)
from toolfold.memory.sql.graph_writer import GraphWriter

_T = TypeVar("_T")


class SqlGraphStore:
    """Implements `GraphStore` over one database, which is to be running as long as this is."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add_entities(self, namespace: str, entities: Sequence[Entity]) -> list[Entity]:
        return await self._write(namespace, lambda writer: writer.add_entities(entities))

    async def add_relations(self, namespace: str, relations: Sequence[Relation]) -> list[Relation]:
        return await self._write(namespace, lambda writer: writer.add_relations(relations))

    async def add_observations(
        self, namespace: str, observed: Sequence[Observed]
    ) -> list[tuple[str, ...]]:
        return await self._write(namespace, lambda writer: writer.add_observations(observed))

    async def merge(self, namespace: str, graph: Subgraph) -> Merged:
        return await self._write(namespace, lambda writer: writer.merge(graph))

    async def delete_entities(self, namespace: str, names: Sequence[str]) -> None:
        await self._write(namespace, lambda writer: writer.delete_entities(names))

    async def delete_observations(self, namespace: str, observed: Sequence[Observed]) -> None:
        await self._write(namespace, lambda writer: writer.delete_observations(observed))

    async def delete_relations(self, namespace: str, relations: Sequence[Relation]) -> None:
        await self._write(namespace, lambda writer: writer.delete_relations(relations))

    async def changed(self, namespace: str) -> int:
        def work(connection: SqlConnection, graph: int) -> int:
            statement = "SELECT changed FROM graphs WHERE id = ?"
            [number] = connection.execute(statement, (graph,)).fetchone()
            found: int = number
            return found

        return await self._read(namespace, work, 0)

    async def read(self, namespace: str) -> Encoded:
        return await self._read(namespace, read_all, Encoded())

    async def open(self, namespace: str, names: Sequence[str]) -> Encoded:
        def work(connection: SqlConnection, graph: int) -> Encoded:
            found = named(connection, graph, names).values()
            return read_around(connection, graph, [each for numbers in found for each in numbers])

        return await self._read(namespace, work, Encoded())

    async def containing(self, namespace: str, query: str) -> Encoded:
        def work(connection: SqlConnection, graph: int) -> Encoded:
            return read_around(connection, graph, containing(connection, graph, query))

        return await self._read(namespace, work if query else read_connected, Encoded())

    async def word_hits(self, namespace: str, words: Sequence[str]) -> list[list[WordHit]]:
        def work(connection: SqlConnection, graph: int) -> list[list[WordHit]]:
            return [_word_hits(connection, graph, word) for word in words]

        return await self._read(namespace, work, [[] for _ in words])

    async def load(self, namespace: str, keys: Sequence[int]) -> dict[int, Entity]:
        def work(connection: SqlConnection, graph: int) -> dict[int, Entity]:
            return read_entities(connection, graph, keys)

        return await self._read(namespace, work, {})

    async def count(self, namespace: str) -> int:
        return await self._read(namespace, _count, 0)

    async def relations_of(self, namespace: str, names: Sequence[str]) -> list[Relation]:
        def work(connection: SqlConnection, graph: int) -> list[Relation]:
            return relations_of(connection, graph, names)

        return await self._read(namespace, work, [])

    async def types_of(self, namespace: str, names: Sequence[str]) -> Mapping[str, str]:
        def work(connection: SqlConnection, graph: int) -> dict[str, str]:
            first = [numbers[0] for numbers in named(connection, graph, names).values()]
            entities = read_entities(connection, graph, first).values()
            return {entity.name: entity.entity_type for entity in entities}

        return await self._read(namespace, work, {})

    async def spoken(self, namespace: str, phrases: Sequence[str]) -> dict[str, list[Entity]]:
        def work(connection: SqlConnection, graph: int) -> dict[str, list[Entity]]:
            found = spoken(connection, graph, phrases)
            entities = read_entities(connection, graph, [number for _, number in found])
            by_phrase: dict[str, list[Entity]] = {}
            for phrase, number in found:
                by_phrase.setdefault(phrase, []).append(entities[number])
            return by_phrase

        return await self._read(namespace, work, {})

    async def _read(
        self, namespace: str, work: Callable[[SqlConnection, int], _T], nothing: _T
    ) -> _T:
        """Do `work` on the graph of a namespace, or return what stands for an empty one."""

        def found(connection: SqlConnection) -> _T:
            graph = graph_id(connection, namespace)
            return nothing if graph is None else work(connection, graph)

        return await self._database.read(found)

    async def _write(self, namespace: str, work: Callable[[GraphWriter], _T]) -> _T:
        def written(connection: SqlConnection) -> _T:
            writer = GraphWriter(connection, namespace)
            answer = work(writer)
            writer.finish()
            return answer

        return await self._database.write(written, namespace)


def _word_hits(connection: SqlConnection, graph: int, word: str) -> list[WordHit]:
    return [
        WordHit(key, place, name if place == "name" else "")
        for place in get_args(MatchField)
        for key, name in parts_with(connection, graph, word, place)
    ]


def _count(connection: SqlConnection, graph: int) -> int:
    [count] = connection.execute(
        "SELECT count(*) FROM graph_parts WHERE graph = ? AND name IS NOT NULL", (graph,)
    ).fetchone()
    found: int = count
    return found
