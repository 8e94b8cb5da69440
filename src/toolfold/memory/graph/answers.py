"""What the graph answers, as JSON and as text: both exactly those of server-memory. Pure."""

from typing import Any

from toolfold.jsontypes import JsonObject
from toolfold.memory.graph.encoding import as_text, encode, list_text, results_text
from toolfold.memory.graph.inputs import entities_of, relations_of
from toolfold.memory.graph.models import Entity, Relation, Subgraph


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
