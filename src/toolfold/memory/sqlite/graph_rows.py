"""Read a knowledge graph from the rows of a SQLite file, inside of a transaction."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple, TypeAlias

from toolfold.memory.graph.matching import contains, has_halves
from toolfold.memory.graph.models import Entity, Relation, Subgraph
from toolfold.memory.graph.store import Place
from toolfold.memory.sqlite.graph_index import (
    grams_expression,
    grams_table,
    word_expression,
    words_table,
)

Stored: TypeAlias = str | bytes
"""A name or type as it is in the file."""

# Keeps statements well below the number of variables that SQLite takes.
_AT_ONCE: Final = 500

# Above so many it is quicker to read all relations than to look up those of each name.
_MANY_NAMES: Final = 2_000

_PARTS: Final = "SELECT number, entity, name, type, observations FROM graph_parts"
_RELATIONS: Final = "SELECT source, target, type, number FROM graph_relations"


class Part(NamedTuple):
    """What was told of an entity at once; name and type are empty in all but the first."""

    number: int
    entity: int
    name: str
    type: str
    observations: list[str]


def stored(text: str) -> Stored:
    """Return a text as the file holds it: the same text always in the same form."""
    if "\0" in text or has_halves(text):
        return text.encode("utf-8", "surrogatepass")
    return text


def packed(observations: Sequence[str]) -> str:
    """Return observations as the file holds them."""
    text = json.dumps(observations, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode() if has_halves(text) else text


def graph_id(connection: sqlite3.Connection, namespace: str) -> int | None:
    """Return the number of a graph, None if nothing was ever kept in it."""
    found = connection.execute("SELECT id FROM graphs WHERE namespace = ?", (namespace,)).fetchone()
    return None if found is None else found[0]


def read_all(connection: sqlite3.Connection, graph: int) -> Subgraph:
    """Return the whole of a graph."""
    parts = _parts(connection, "graph = ?", (graph,))
    relations = connection.execute(f"{_RELATIONS} WHERE graph = ? ORDER BY number", (graph,))
    return Subgraph(tuple(_entities(parts).values()), tuple(map(_relation, relations)))


def read_connected(connection: sqlite3.Connection, graph: int) -> Subgraph:
    """Return the whole of a graph but for relations between things that are no entities."""
    entities, relations = read_all(connection, graph)
    return Subgraph(entities, tuple(_touching(relations, {entity.name for entity in entities})))


def read_around(connection: sqlite3.Connection, graph: int, entities: Iterable[int]) -> Subgraph:
    """Return entities, and all relations that begin or end at one."""
    found = read_entities(connection, graph, entities).values()
    relations = relations_of(connection, graph, {entity.name for entity in found})
    return Subgraph(tuple(found), tuple(relations))


def read_entities(
    connection: sqlite3.Connection, graph: int, entities: Iterable[int]
) -> dict[int, Entity]:
    """Return entities by number, in the order of their making, without those that are not there."""
    return _entities(
        part
        for some in _portions(sorted(entities))
        for part in _parts(connection, f"graph = ? AND entity IN ({_marks(some)})", (graph, *some))
    )


def parts_of(connection: sqlite3.Connection, graph: int, entity: int) -> list[Part]:
    """Return the parts of an entity, in order."""
    return _parts(connection, "graph = ? AND entity = ?", (graph, entity))


def named(connection: sqlite3.Connection, graph: int, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of the entities of each name that has some, in the order of making."""
    found: dict[str, list[int]] = {}
    for some in _portions([stored(name) for name in dict.fromkeys(names)]):
        rows = connection.execute(
            f"SELECT name, number FROM graph_parts WHERE graph = ? AND name IN ({_marks(some)}) "
            "ORDER BY number",
            (graph, *some),
        )
        for name, number in rows:
            found.setdefault(_text(name), []).append(number)
    return found


def containing(connection: sqlite3.Connection, graph: int, query: str) -> set[int]:
    """Return the entities with a text that contains the query."""
    is_hit = contains(query)
    expression = grams_expression(query)
    if expression is None:
        parts = _parts(connection, "graph = ?", (graph,))
    else:
        grams = grams_table(graph)
        condition = f"number IN (SELECT rowid FROM {grams} WHERE {grams} MATCH ?)"
        parts = _parts(connection, condition, (expression,))
    # A name that only the first part has is empty in the others, and what is empty contains none.
    return {
        part.entity
        for part in parts
        if any(is_hit(text) for text in (part.name, part.type, *part.observations))
    }


def parts_with(
    connection: sqlite3.Connection, graph: int, word: str, place: Place
) -> Iterator[tuple[int, str]]:
    """Give the entities that have a word in one place, and the names that stand beside it."""
    words = words_table(graph)
    rows = connection.execute(
        f"SELECT entity, graph_parts.name FROM {words} JOIN graph_parts "
        f"ON number = {words}.rowid WHERE {words} MATCH ?",
        (word_expression(word, place),),
    )
    return ((entity, _text(name)) for entity, name in rows)


def relations_of(connection: sqlite3.Connection, graph: int, names: Set[str]) -> list[Relation]:
    """Return all relations that begin or end at one of these names, each once, in order."""
    if len(names) > _MANY_NAMES:
        rows = connection.execute(f"{_RELATIONS} WHERE graph = ? ORDER BY number", (graph,))
        return list(_touching(map(_relation, rows), names))
    found: dict[int, Relation] = {}
    for some in _portions([stored(name) for name in names]):
        for end in ("source", "target"):
            rows = connection.execute(
                f"{_RELATIONS} WHERE graph = ? AND {end} IN ({_marks(some)})", (graph, *some)
            )
            found |= {row[3]: _relation(row) for row in rows}
    return [found[number] for number in sorted(found)]


def spoken(
    connection: sqlite3.Connection, graph: int, phrases: Sequence[str]
) -> list[tuple[str, int]]:
    """Return which phrases are names of which entities, in the order of their making."""
    found: list[tuple[str, int]] = []
    for some in _portions(phrases):
        found += connection.execute(
            "SELECT spoken, number FROM graph_parts "
            f"WHERE graph = ? AND spoken IN ({_marks(some)})",
            (graph, *some),
        )
    return sorted(found, key=lambda each: each[1])


def _parts(
    connection: sqlite3.Connection, condition: str, values: Sequence[int | Stored]
) -> list[Part]:
    rows = connection.execute(
        f"{_PARTS} WHERE {condition} ORDER BY entity, number", values
    ).fetchall()
    # All lists in one go: there may be a great many.
    observations = json.loads(f"[{','.join([row[4] for row in rows])}]")
    return [
        Part(number, entity, _text(name), _text(kind), told)
        for (number, entity, name, kind, _), told in zip(rows, observations, strict=True)
    ]


def _entities(parts: Iterable[Part]) -> dict[int, Entity]:
    """Put parts together that come in the order of their entities and numbers."""
    first: dict[int, Part] = {}
    for part in parts:
        if part.number == part.entity:
            first[part.entity] = part
        else:
            first[part.entity].observations.extend(part.observations)
    return {
        entity: Entity(name, kind, tuple(observations))
        for entity, (_, _, name, kind, observations) in first.items()
    }


def _relation(row: tuple[Stored, Stored, Stored, int]) -> Relation:
    source, target, kind, _ = row
    return Relation(_text(source), _text(target), _text(kind))


def _touching(relations: Iterable[Relation], names: Set[str]) -> Iterator[Relation]:
    return (each for each in relations if each.source in names or each.target in names)


def _text(value: Stored | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else value.decode("utf-8", "surrogatepass")


def _portions(values: Sequence[Stored | int]) -> Iterator[Sequence[Stored | int]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
