"""Read a knowledge graph from the rows of memory's tables, inside of a transaction."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple, TypeAlias

from toolfold.memory.graph.encoding import (
    Encoded,
    EncodedEntity,
    EncodedRelation,
    MatchField,
    decode,
    joined,
    quoted,
    unpacked,
)
from toolfold.memory.graph.models import Entity, Relation, contains
from toolfold.memory.sql.connection import PartTexts, SqlConnection, Stored

# Keeps statements well below the number of variables that SQLite takes.
_AT_ONCE: Final = 500

# Above so many it is quicker to read all relations than to look up those of each name.
_MANY_NAMES: Final = 2_000

# Up to so many it is quicker to have the database look for each than to look at all parts.
_MANY_TEXTS: Final = 8

_RelationRow: TypeAlias = tuple[Stored, Stored, Stored, int]

_PARTS: Final = "SELECT number, entity, name, type, observations FROM graph_parts"
_RELATIONS: Final = "SELECT source, target, type, number FROM graph_relations"


class Part(NamedTuple):
    """What was told of an entity at once; name and type are None in all but the first."""

    number: int
    entity: int
    name: Stored | None
    type: Stored | None
    observations: str
    """See `encoding.packed`."""

    def texts(self) -> PartTexts:
        """Return name, type and observations; what is None is empty."""
        [observations] = unpacked(self.observations)
        return _text(self.name), _text(self.type), observations


def graph_id(connection: SqlConnection, namespace: str) -> int | None:
    """Return the number of a graph, None if nothing was ever kept in it."""
    found = connection.execute("SELECT id FROM graphs WHERE namespace = ?", (namespace,)).fetchone()
    return None if found is None else found[0]


def read_all(connection: SqlConnection, graph: int) -> Encoded:
    """Return the whole of a graph."""
    parts = _parts(connection, "graph = ?", (graph,))
    return Encoded(_entities(parts), _relations(_all_relations(connection, graph)))


def read_connected(connection: SqlConnection, graph: int) -> Encoded:
    """Return the whole of a graph but for relations between things that are no entities."""
    parts = _parts(connection, "graph = ?", (graph,))
    return Encoded(_entities(parts), _relations_around(connection, graph, parts))


def read_around(connection: SqlConnection, graph: int, entities: Iterable[int]) -> Encoded:
    """Return entities, and all relations that begin or end at one."""
    parts = _parts_of_all(connection, graph, entities)
    return Encoded(_entities(parts), _relations_around(connection, graph, parts))


def read_entities(
    connection: SqlConnection, graph: int, entities: Iterable[int]
) -> dict[int, Entity]:
    """Return entities by number, in the order of their making, without those that are not there."""
    parts = _parts_of_all(connection, graph, entities)
    found = decode(Encoded(_entities(parts))).entities
    numbers = (part.number for part in parts if part.number == part.entity)
    return dict(zip(numbers, found, strict=True))


def parts_of(connection: SqlConnection, graph: int, entity: int) -> list[Part]:
    """Return the parts of an entity, in order."""
    return _parts(connection, "graph = ? AND entity = ?", (graph, entity))


def parts_saying(
    connection: SqlConnection, graph: int, entity: int, texts: Iterable[str]
) -> list[Part]:
    """Return the parts of an entity that may have one of these observations; all are among them."""
    sought = [quoted(text) for text in set(texts)]
    if len(sought) > _MANY_TEXTS:
        return parts_of(connection, graph, entity)
    says = " OR ".join(["instr(observations, ?)"] * len(sought)) or "FALSE"
    return _parts(connection, f"graph = ? AND entity = ? AND ({says})", (graph, entity, *sought))


def named(connection: SqlConnection, graph: int, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of the entities of each name that has some, in the order of making."""
    found: dict[str, list[int]] = {}
    for some in _portions([connection.stored(name) for name in dict.fromkeys(names)]):
        rows = connection.execute(
            f"SELECT name, number FROM graph_parts WHERE graph = ? AND name IN ({_marks(some)}) "
            "ORDER BY number",
            (graph, *some),
        )
        for name, number in rows:
            found.setdefault(_text(name), []).append(number)
    return found


def containing(connection: SqlConnection, graph: int, query: str) -> set[int]:
    """Return the entities with a text that contains the query."""
    is_hit = contains(query)
    parts = _parts(connection, *connection.parts.containing(graph, query))
    return {part.entity for part in parts if _has_hit(part, is_hit)}


def parts_with(
    connection: SqlConnection, graph: int, word: str, place: MatchField
) -> Iterator[tuple[int, str]]:
    """Give the entities that have a word in one place, and the names that stand beside it."""
    meets = connection.parts.with_word(graph, word, place)
    rows = connection.execute(
        f"SELECT entity, name FROM graph_parts WHERE {meets.sql} ORDER BY number", meets.values
    )
    return ((entity, _text(name)) for entity, name in rows)


def relations_of(connection: SqlConnection, graph: int, names: Iterable[str]) -> list[Relation]:
    """Return all relations that begin or end at one of these names, each once, in order."""
    rows = _relations_touching(connection, graph, {connection.stored(name) for name in names})
    return [Relation(_text(row[0]), _text(row[1]), _text(row[2])) for row in rows]


def spoken(connection: SqlConnection, graph: int, phrases: Sequence[str]) -> list[tuple[str, int]]:
    """Return which phrases are names of which entities, in the order of their making."""
    found: list[tuple[str, int]] = []
    for some in _portions(phrases):
        found += connection.execute(
            "SELECT spoken, number FROM graph_parts "
            f"WHERE graph = ? AND spoken IN ({_marks(some)})",
            (graph, *some),
        )
    return sorted(found, key=lambda each: each[1])


def _parts(connection: SqlConnection, condition: str, values: Sequence[object]) -> list[Part]:
    rows = connection.execute(f"{_PARTS} WHERE {condition} ORDER BY entity, number", values)
    return list(map(Part._make, rows))


def _parts_of_all(connection: SqlConnection, graph: int, entities: Iterable[int]) -> list[Part]:
    return [
        part
        for some in _portions(sorted(entities))
        for part in _parts(connection, f"graph = ? AND entity IN ({_marks(some)})", (graph, *some))
    ]


def _entities(parts: Sequence[Part]) -> list[EncodedEntity]:
    """Put parts together that come in the order of their entities and numbers."""
    try:
        return _put_together(parts, encode_basestring)
    except TypeError:  # a name is a blob
        return _put_together(parts, _quoted)


def _put_together(parts: Iterable[Part], quote: Callable[[Any], str]) -> list[EncodedEntity]:
    found: list[EncodedEntity] = []
    added: list[str] = []
    for number, entity, name, kind, observations in parts:
        if number != entity:
            added.append(observations)
            continue
        if added:
            _extend(found, added)
        found.append((quote(name), quote(kind), observations))
    _extend(found, added)
    return found


def _extend(found: list[EncodedEntity], added: list[str]) -> None:
    """Give the last entity what its later parts say."""
    if added:
        name, kind, observations = found[-1]
        found[-1] = (name, kind, joined([observations, *added]))
        added.clear()


def _relations_around(
    connection: SqlConnection, graph: int, parts: Iterable[Part]
) -> list[EncodedRelation]:
    names = {part.name for part in parts if part.name is not None}
    return _relations(_relations_touching(connection, graph, names))


def _relations_touching(
    connection: SqlConnection, graph: int, names: Set[Stored]
) -> list[_RelationRow]:
    if len(names) > _MANY_NAMES:
        every = _all_relations(connection, graph)
        return [row for row in every if row[0] in names or row[1] in names]
    found: dict[int, _RelationRow] = {}
    for some in _portions(list(names)):
        for end in ("source", "target"):
            rows = connection.execute(
                f"{_RELATIONS} WHERE graph = ? AND {end} IN ({_marks(some)})", (graph, *some)
            )
            found |= {row[3]: row for row in rows}
    return [found[number] for number in sorted(found)]


def _all_relations(connection: SqlConnection, graph: int) -> list[_RelationRow]:
    statement = f"{_RELATIONS} WHERE graph = ? ORDER BY number"
    return connection.execute(statement, (graph,)).fetchall()


def _relations(rows: Sequence[_RelationRow]) -> list[EncodedRelation]:
    try:
        # Blobs fail here; anything else is several times as slow.
        quote: Callable[[Any], str] = encode_basestring
        return [(quote(source), quote(target), quote(kind)) for source, target, kind, _ in rows]
    except TypeError:
        return [(_quoted(row[0]), _quoted(row[1]), _quoted(row[2])) for row in rows]


def _has_hit(part: Part, is_hit: Callable[[str], bool]) -> bool:
    # What is empty contains nothing that is searched for here.
    name, kind, observations = part.texts()
    return is_hit(name) or is_hit(kind) or any(map(is_hit, observations))


def _quoted(value: Stored | None) -> str:
    return quoted(_text(value))


def _text(value: Stored | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else value.decode("utf-8", "surrogatepass")


def _portions(values: Sequence[Stored | int]) -> Iterator[Sequence[Stored | int]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
