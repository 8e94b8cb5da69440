"""The file of server-memory: a line of JSON for each entity, then one for each relation. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from toolfold.errors import BadInput
from toolfold.memory.graph.encoding import Encoded, entity_line, relation_line
from toolfold.memory.graph.inputs import ENTITY, RELATION, check_shape, entities_of, relations_of
from toolfold.memory.graph.models import Entity, Fault, Relation, Subgraph

_MAX_REASON_CHARS = 300


def written(graph: Encoded) -> str:
    """Return the file of a graph, without a line break at its end."""
    entities = [f'{{"type":"entity",{entity_line(each)}}}' for each in graph.entities]
    relations = [f'{{"type":"relation",{relation_line(each)}}}' for each in graph.relations]
    return "\n".join([*entities, *relations])


def read(lines: Iterable[str]) -> tuple[Subgraph, list[Fault]]:
    """Return the graph of a file, and the lines that cannot be used, counted from 1.

    Empty lines say nothing.
    """
    entities: list[Entity] = []
    relations: list[Relation] = []
    faults = []
    for number, line in enumerate(lines, start=1):
        try:
            for found in _values(line):
                (entities if isinstance(found, Entity) else relations).append(found)  # type: ignore[arg-type]
        except BadInput as error:
            faults.append(Fault(number, str(error)[:_MAX_REASON_CHARS]))
    return Subgraph(tuple(entities), tuple(relations)), faults


def _values(line: str) -> Iterator[Entity | Relation]:
    if not line.strip():
        return
    value = _parsed(line)
    if value.get("type") == "entity":
        check_shape(ENTITY, value)
        yield from entities_of([value])
    elif value.get("type") == "relation":
        check_shape(RELATION, value)
        yield from relations_of([value])
    else:
        raise BadInput("Its type is neither entity nor relation")


def _parsed(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"It is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput("It is not an object")
    return value
