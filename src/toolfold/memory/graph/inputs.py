"""What the graph takes and answers, in the words and lines of server-memory, and bounds. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from toolfold.errors import BadInput
from toolfold.jsontypes import JsonObject
from toolfold.memory.graph.encoding import (
    Encoded,
    Observed,
    as_text,
    encode,
    entity_line,
    list_text,
    relation_line,
    results_text,
)
from toolfold.memory.graph.models import Entity, Fault, Relation, Subgraph, whole
from toolfold.memory.inputs import MAX_CONTENT_BYTES

MAX_TEXTS: Final = 250_000
MAX_CALL_BYTES: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 10
MAX_LINES: Final = 100_000
MAX_FAULTS: Final = 1_000

InputShape: TypeAlias = "str | list[InputShape] | dict[str, InputShape]"
"""What a value must be: "string", a list of one shape, or an object with at least these keys."""

_STRINGS: Final[InputShape] = ["string"]
ENTITY: Final[InputShape] = {"name": "string", "entityType": "string", "observations": _STRINGS}
ENTITY_GIVEN: Final[InputShape] = {
    "name": "string",
    "entity_type": "string",
    "observations": _STRINGS,
}
RELATION: Final[InputShape] = {"from": "string", "to": "string", "relationType": "string"}

ARGUMENTS: Final[Mapping[str, Mapping[str, InputShape]]] = {
    "create_entities": {"entities": [ENTITY]},
    "create_relations": {"relations": [RELATION]},
    "add_observations": {"observations": [{"entityName": "string", "contents": _STRINGS}]},
    "delete_entities": {"entityNames": _STRINGS},
    "delete_observations": {"deletions": [{"entityName": "string", "observations": _STRINGS}]},
    "delete_relations": {"relations": [RELATION]},
    "read_graph": {},
    "search_nodes": {"query": "string"},
    "open_nodes": {"names": _STRINGS},
}
"""What each of the nine tools takes."""

_MISSING: Final = object()
_KINDS: Final = (
    (bool, "boolean"),
    (str, "string"),
    ((int, float), "number"),
    (Mapping, "object"),
    (Sequence, "array"),
    (type(None), "null"),
)


def check(tool: str, arguments: Mapping[str, Any]) -> None:
    """Check the arguments of one of the nine tools.

    Raises:
        BadInput: As `check_shape`.
    """
    check_shape(dict(ARGUMENTS[tool]), arguments)


def check_shape(shape: InputShape, value: object) -> None:
    """Check a value from outside; what an object has beside its shape does not matter.

    Raises:
        BadInput: Something is missing or of another kind, and each such place is named on a line.
            Or there is too much of it.
    """
    faults = list(islice(_faults(shape, value, ""), MAX_FAULTS))
    if faults:
        raise BadInput("\n".join(faults))
    _check_size(value)


def entities_of(values: Sequence[Mapping[str, Any]]) -> list[Entity]:
    """Return entities of checked values."""
    return [
        Entity(whole(each["name"]), whole(each["entityType"]), texts(each["observations"]))
        for each in values
    ]


def relations_of(values: Sequence[Mapping[str, Any]]) -> list[Relation]:
    """Return relations of checked values."""
    return [
        Relation(whole(each["from"]), whole(each["to"]), whole(each["relationType"]))
        for each in values
    ]


def observed(values: Sequence[Mapping[str, Any]], key: str) -> list[Observed]:
    """Return what was observed of which entity, of checked values."""
    return [Observed(whole(each["entityName"]), texts(each[key])) for each in values]


def texts(values: Sequence[str]) -> tuple[str, ...]:
    """Return checked texts."""
    return tuple(map(whole, values))


def lines_of(value: str | Sequence[str]) -> Sequence[str]:
    """Return the lines of a file that is given as a text or as lines.

    Raises:
        BadInput: It is neither, or too large for one import.
    """
    if isinstance(value, str):
        value = value.removeprefix("\ufeff").split("\n")
    faults = list(islice(_faults(["string"], value, "lines"), MAX_FAULTS))
    if faults:
        raise BadInput("\n".join(faults))
    size = sum(map(len, value))
    if len(value) > MAX_LINES or size > MAX_CALL_BYTES:
        raise BadInput(
            f"{len(value):,} lines with {size:,} characters are too much for one import: "
            f"the limits are {MAX_LINES:,} and {MAX_CALL_BYTES:,}. Nothing was changed; "
            "import them in parts. Importing again does not create duplicates."
        )
    return value


def check_depth(value: object) -> int:
    """Return how far to go.

    Raises:
        BadInput: It is no whole number from 1 to `MAX_DEPTH`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_DEPTH:
        raise BadInput(f"`depth` is a whole number from 1 to {MAX_DEPTH}, not {value!r:.60}.")
    return value


def _faults(shape: InputShape, value: object, path: str) -> Iterator[str]:
    expected = shape if isinstance(shape, str) else "array" if isinstance(shape, list) else "object"
    received = _kind(value)
    if received != expected:
        place = f" at {path}" if path else ""
        yield f"Invalid input: expected {expected}, received {received}{place}"
    elif isinstance(shape, list) and isinstance(value, Sequence):
        for number, part in enumerate(value):
            yield from _faults(shape[0], part, f"{path}[{number}]")
    elif isinstance(shape, dict) and isinstance(value, Mapping):
        for key, part in shape.items():
            yield from _faults(part, value.get(key, _MISSING), f"{path}.{key}" if path else key)


def _kind(value: object) -> str:
    if value is _MISSING:
        return "undefined"
    return next((name for kind, name in _KINDS if isinstance(value, kind)), type(value).__name__)


def _check_size(value: object) -> None:
    count = size = 0
    for text in _strings(value):
        count, size = count + 1, size + len(text)
        if len(text) > MAX_CONTENT_BYTES:
            raise BadInput(
                f"A text of {len(text):,} characters is too long for the graph, where "
                f"{MAX_CONTENT_BYTES:,} is the limit. Nothing was changed; shorten it."
            )
    if count > MAX_TEXTS or size > MAX_CALL_BYTES:
        raise BadInput(
            f"{count:,} texts with {size:,} characters are too much for one call: the limits are "
            f"{MAX_TEXTS:,} and {MAX_CALL_BYTES:,}. Nothing was changed; make several calls."
        )


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _strings(part)


def entity_json(entity: Entity) -> JsonObject:
    """Return an entity."""
    name, entity_type, observations = entity
    return {"name": name, "entityType": entity_type, "observations": list(observations)}


def relation_json(relation: Relation) -> JsonObject:
    """Return a relation."""
    source, target, relation_type = relation
    return {"from": source, "to": target, "relationType": relation_type}


def done(what: str) -> JsonObject:
    """Return that a deletion succeeded."""
    return {"success": True, "message": f"{what} deleted successfully"}


def text_of(answer: JsonObject) -> str:
    """Return the text that stands beside an answer of one of the nine tools.

    That is a sentence, or JSON indented by two: the whole graph, or the list without its name.
    """
    value: dict[str, Any] = answer
    if "message" in value:
        return str(value["message"])
    if "results" in value:
        return results_text(
            [(each["entityName"], each["addedObservations"]) for each in value["results"]]
        )
    graph = encode(
        Subgraph(
            tuple(entities_of(value.get("entities", ()))),
            tuple(relations_of(value.get("relations", ()))),
        )
    )
    return as_text(graph) if len(value) == 2 else list_text(graph)


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
