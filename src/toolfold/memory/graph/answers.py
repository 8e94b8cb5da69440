"""What the graph answers, as JSON and as text: both exactly those of server-memory. Pure."""

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

from toolfold.jsontypes import JsonObject
from toolfold.memory.graph.matching import has_halves
from toolfold.memory.graph.models import Entity, Relation, Subgraph

# Where `json` indents, it is slow: writing a large graph would take longer than reading it. Quotes
# it puts around texts as JavaScript does.
_quoted: Final = encode_basestring
_NEXT_LINE: Final = ",\n        "


def graph_json(graph: Subgraph) -> JsonObject:
    """Return a graph."""
    return {
        "entities": [entity_json(each) for each in graph.entities],
        "relations": [relation_json(each) for each in graph.relations],
    }


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
    graph: Any = answer
    if "message" in graph:
        return str(graph["message"])
    text = _indented(graph)
    # JavaScript writes halves of surrogate pairs as escapes.
    return text.encode("utf-8", "backslashreplace").decode() if has_halves(text) else text


def _indented(answer: dict[str, Any]) -> str:
    if len(answer) == 2:
        entities = _listed(map(_entity, answer["entities"]), "  ")
        relations = _listed(map(_relation, answer["relations"]), "  ")
        return f'{{\n  "entities": {entities},\n  "relations": {relations}\n}}'
    [(name, values)] = answer.items()
    written = {"entities": _entity, "relations": _relation, "results": _result}[name]
    return _listed((written(each).replace("\n  ", "\n") for each in values), "")


def _entity(value: dict[str, Any]) -> str:
    return (
        f'{{\n      "name": {_quoted(value["name"])},\n'
        f'      "entityType": {_quoted(value["entityType"])},\n'
        f'      "observations": {_strings(value["observations"])}\n    }}'
    )


def _relation(value: dict[str, Any]) -> str:
    return (
        f'{{\n      "from": {_quoted(value["from"])},\n'
        f'      "to": {_quoted(value["to"])},\n'
        f'      "relationType": {_quoted(value["relationType"])}\n    }}'
    )


def _result(value: dict[str, Any]) -> str:
    return (
        f'{{\n      "entityName": {_quoted(value["entityName"])},\n'
        f'      "addedObservations": {_strings(value["addedObservations"])}\n    }}'
    )


def _listed(items: Iterable[str], indent: str) -> str:
    joined = f",\n{indent}  ".join(items)
    return f"[\n{indent}  {joined}\n{indent}]" if joined else "[]"


def _strings(values: Sequence[str]) -> str:
    return f"[\n        {_NEXT_LINE.join(map(_quoted, values))}\n      ]" if values else "[]"
