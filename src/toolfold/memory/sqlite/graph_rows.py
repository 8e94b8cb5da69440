"""Read a knowledge graph from the rows of a SQLite file, inside of a transaction."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Final, TypeAlias

from toolfold.memory.graph.matching import contains, has_halves
from toolfold.memory.graph.models import Entity, Relation, Subgraph
from toolfold.memory.sqlite.graph_index import grams_expression, grams_table

Stored: TypeAlias = str | bytes
"""A text as it is in the file."""

# Keeps statements well below the number of variables that SQLite takes.
_AT_ONCE: Final = 500

# Above so many it is quicker to read all relations than to look up those of each name.
_MANY_NAMES: Final = 2_000

_RELATIONS: Final = "SELECT source, target, type, number FROM graph_relations"


def stored(text: str) -> Stored:
    """Return a text as the file holds it: the same text always in the same form."""
    if "\0" in text or has_halves(text):
        return text.encode("utf-8", "surrogatepass")
    return text


def text_of(value: Stored) -> str:
    """Return a text that the file holds."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def graph_id(connection: sqlite3.Connection, namespace: str) -> int | None:
    """Return the number of a graph, None if nothing was ever kept in it."""
    found = connection.execute("SELECT id FROM graphs WHERE namespace = ?", (namespace,)).fetchone()
    return None if found is None else found[0]


def read_all(connection: sqlite3.Connection, graph: int) -> Subgraph:
    """Return the whole of a graph."""
    rows = connection.execute(
        "SELECT entity, text FROM graph_texts WHERE graph = ? ORDER BY number", (graph,)
    )
    relations = connection.execute(f"{_RELATIONS} WHERE graph = ? ORDER BY number", (graph,))
    return Subgraph(tuple(_entities(rows).values()), tuple(map(_relation, relations)))


def read_connected(connection: sqlite3.Connection, graph: int) -> Subgraph:
    """Return the whole of a graph but for relations between things that are no entities."""
    entities, relations = read_all(connection, graph)
    return Subgraph(entities, tuple(_touching(relations, {entity.name for entity in entities})))


def read_entities(
    connection: sqlite3.Connection, graph: int, entities: Iterable[int]
) -> dict[int, Entity]:
    """Return entities by number, in the order of their making, without those that are not there."""
    found: dict[int, Entity] = {}
    for some in _portions(sorted(entities)):
        rows = connection.execute(
            # The plus keeps SQLite from going through all texts of the graph instead.
            f"SELECT entity, text FROM graph_texts WHERE entity IN ({_marks(some)}) "
            "AND +graph = ? ORDER BY entity, number",
            (*some, graph),
        )
        found |= _entities(rows)
    return found


def read_around(connection: sqlite3.Connection, graph: int, entities: Iterable[int]) -> Subgraph:
    """Return entities, and all relations that begin or end at one."""
    found = read_entities(connection, graph, entities).values()
    relations = relations_of(connection, graph, {entity.name for entity in found})
    return Subgraph(tuple(found), tuple(relations))


def named(connection: sqlite3.Connection, graph: int, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of the entities of each name that has some, in the order of making."""
    found: dict[str, list[int]] = {}
    for some in _portions([stored(name) for name in dict.fromkeys(names)]):
        rows = connection.execute(
            "SELECT text, number FROM graph_texts WHERE graph = ? AND place = 'name' "
            f"AND text IN ({_marks(some)}) ORDER BY number",
            (graph, *some),
        )
        for name, number in rows:
            found.setdefault(text_of(name), []).append(number)
    return found


def containing(connection: sqlite3.Connection, graph: int, query: str) -> set[int]:
    """Return the entities with a text that contains the query."""
    is_hit = contains(query)
    expression = grams_expression(query)
    if expression is None:
        rows = connection.execute("SELECT entity, text FROM graph_texts WHERE graph = ?", (graph,))
    else:
        grams = grams_table(graph)
        rows = connection.execute(
            f"SELECT entity, graph_texts.text FROM {grams} JOIN graph_texts "
            f"ON number = {grams}.rowid WHERE {grams} MATCH ?",
            (expression,),
        )
    return _hits(rows, is_hit)


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
            "SELECT spoken, number FROM graph_texts "
            f"WHERE graph = ? AND spoken IN ({_marks(some)})",
            (graph, *some),
        )
    return sorted(found, key=lambda each: each[1])


def _entities(rows: Iterable[tuple[int, Stored]]) -> dict[int, Entity]:
    """Put texts together that come in the order of their numbers; there may be a great many."""
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for entity, text in rows:
        texts[entity].append(text if isinstance(text, str) else text_of(text))
    return {entity: Entity(own[0], own[1], tuple(own[2:])) for entity, own in texts.items()}


def _relation(row: tuple[Stored, Stored, Stored, int]) -> Relation:
    source, target, kind, _ = row
    return Relation(text_of(source), text_of(target), text_of(kind))


def _touching(relations: Iterable[Relation], names: Set[str]) -> Iterator[Relation]:
    return (each for each in relations if each.source in names or each.target in names)


def _hits(rows: Iterable[tuple[int, Stored]], is_hit: Callable[[str], bool]) -> set[int]:
    return {entity for entity, text in rows if is_hit(text_of(text))}


def _portions(values: Sequence[Stored | int]) -> Iterator[Sequence[Stored | int]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
