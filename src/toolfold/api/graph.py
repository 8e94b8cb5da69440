"""The knowledge graph, for scripts. Made by `scripts/write_verbs.py`: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfold.api import forms
from toolfold.api.door import ask
from toolfold.api.verbs import create_entity, search_graph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolfold.jsontypes import Json, JsonObject
    from toolfold.memory.graph.models import Entity, GraphPath, ImportReport, Neighbors
    from toolfold.memory.models import CompactSearchResult

__all__ = [
    "add_observations",
    "create_entities",
    "create_entity",
    "create_relations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "entities_of",
    "export_jsonl",
    "import_jsonl",
    "mentions",
    "neighbors",
    "open_nodes",
    "read_graph",
    "search_graph",
    "search_nodes",
    "shortest_path",
]


def create_entities(entities: Sequence[Mapping[str, Json]]) -> JsonObject:
    """Create entities: `[{"name": "Ada", "entityType": "person", "observations": ["codes"]}]`.

    Returns `{"entities": […]}` with the new ones. An existing entity stays as it is;
    `add_observations` adds to it.
    """
    answer: JsonObject = ask("graph.create_entities", locals(), may_repeat=True)
    return answer


def create_relations(relations: Sequence[Mapping[str, Json]]) -> JsonObject:
    """Create relations: `[{"from": "Ada", "to": "Acme", "relationType": "works at"}]`.

    Returns `{"relations": […]}` with the new ones.
    """
    answer: JsonObject = ask("graph.create_relations", locals(), may_repeat=True)
    return answer


def add_observations(observations: Sequence[Mapping[str, Json]]) -> JsonObject:
    """Add observations: `[{"entityName": "Ada", "contents": ["likes tea"]}]`.

    Returns `{"results": [{"entityName": …, "addedObservations": […]}]}` with what is new.
    """
    answer: JsonObject = ask("graph.add_observations", locals(), may_repeat=True)
    return answer


def delete_entities(entityNames: Sequence[str]) -> JsonObject:
    """Delete entities and their relations for good."""
    answer: JsonObject = ask("graph.delete_entities", locals())
    return answer


def delete_observations(deletions: Sequence[Mapping[str, Json]]) -> JsonObject:
    """Delete for good: `[{"entityName": "Ada", "observations": ["likes tea"]}]`."""
    answer: JsonObject = ask("graph.delete_observations", locals())
    return answer


def delete_relations(relations: Sequence[Mapping[str, Json]]) -> JsonObject:
    """Delete relations for good; they are given as to `create_relations`."""
    answer: JsonObject = ask("graph.delete_relations", locals())
    return answer


def read_graph() -> JsonObject:
    """Return the whole graph: `{"entities": […], "relations": […]}`, in order of creation."""
    answer: JsonObject = ask("graph.read_graph", {}, may_repeat=True)
    return answer


def search_nodes(query: str) -> JsonObject:
    """Return entities with exactly this text in their name, type or an observation.

    Case does not matter. Their relations are returned too. `search_graph` also finds entities
    that have only some of the words.
    """
    answer: JsonObject = ask("graph.search_nodes", locals(), may_repeat=True)
    return answer


def open_nodes(names: Sequence[str]) -> JsonObject:
    """Return the entities with these names, and their relations."""
    answer: JsonObject = ask("graph.open_nodes", locals(), may_repeat=True)
    return answer


def neighbors(name: str, depth: int = 1, limit: int = 50) -> Neighbors:
    """Return entities at most `depth` relations away from an entity, nearest first.

    Relations count in both directions. Each neighbour says by which relation it was reached.
    """
    answer: Neighbors = forms.named(
        "toolfold.memory.graph.models",
        "Neighbors",
        ask("graph.neighbors", locals(), may_repeat=True),
    )
    return answer


def shortest_path(source: str, target: str) -> GraphPath:
    """Return the shortest path between two entities.

    Relations count in both directions. Without a connection the path is empty.
    """
    answer: GraphPath = forms.named(
        "toolfold.memory.graph.models",
        "GraphPath",
        ask("graph.shortest_path", locals(), may_repeat=True),
    )
    return answer


def mentions(name: str, limit: int = 10) -> CompactSearchResult:
    """Return the notes that mention an entity, best first; `total` counts all that were found.

    A note mentions it if the words of its name stand there one after the other, in any case.
    They are looked for among the 1,000 notes that match these words best.
    """
    return forms.found(ask("graph.mentions", locals(), may_repeat=True))


def entities_of(hash: str) -> tuple[Entity, ...]:
    """Return the entities that a note mentions, in order of appearance."""
    answer: tuple[Entity, ...] = forms.all_named(
        "toolfold.memory.graph.models",
        "Entity",
        ask("graph.entities_of", locals(), may_repeat=True),
    )
    return answer


def export_jsonl() -> str:
    """Return the graph in the format of server-memory: JSON lines, entities first."""
    return forms.text(ask("graph.export_jsonl", {}, may_repeat=True))


def import_jsonl(lines: str | Sequence[str]) -> ImportReport:
    """Import lines in the format of server-memory, and return what was new.

    An existing entity gets the observations that it lacks. An unusable line is named, and the
    others are imported.
    """
    answer: ImportReport = forms.named(
        "toolfold.memory.graph.models",
        "ImportReport",
        ask("graph.import_jsonl", locals(), may_repeat=True),
    )
    return answer
