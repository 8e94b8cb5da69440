"""The knowledge graph for scripts, as `toolfold.api` is for notes.

The first nine are the tools of server-memory, with the same answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolfold.api import create_entity, forms, search_graph
from toolfold.api.door import ask
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

_Many = Sequence[Mapping[str, Json]]


def create_entities(entities: _Many) -> JsonObject:
    """Make entities: `[{"name": "Ada", "entityType": "person", "observations": ["codes"]}]`."""
    return _object("create_entities", locals(), may_repeat=True)


def create_relations(relations: _Many) -> JsonObject:
    """Relate entities: `[{"from": "Ada", "to": "Acme", "relationType": "works at"}]`."""
    return _object("create_relations", locals(), may_repeat=True)


def add_observations(observations: _Many) -> JsonObject:
    """Add to what is known of entities: `[{"entityName": "Ada", "contents": ["likes tea"]}]`."""
    return _object("add_observations", locals(), may_repeat=True)


def delete_entities(entityNames: Sequence[str]) -> JsonObject:
    """Delete entities, and all relations that begin or end at them, for good."""
    return _object("delete_entities", locals())


def delete_observations(deletions: _Many) -> JsonObject:
    """Delete for good: `[{"entityName": "Ada", "observations": ["likes tea"]}]`."""
    return _object("delete_observations", locals())


def delete_relations(relations: _Many) -> JsonObject:
    """Delete relations for good; they are told as for `create_relations`."""
    return _object("delete_relations", locals())


def read_graph() -> JsonObject:
    """Return everything: `{"entities": […], "relations": […]}`."""
    return _object("read_graph", {}, may_repeat=True)


def search_nodes(query: str) -> JsonObject:
    """Return entities that have exactly this text in their name, type or an observation."""
    return _object("search_nodes", locals(), may_repeat=True)


def open_nodes(names: Sequence[str]) -> JsonObject:
    """Return the entities of these names, and the relations that begin or end at one."""
    return _object("open_nodes", locals(), may_repeat=True)


def neighbors(name: str, depth: int = 1, limit: int = 50) -> Neighbors:
    """Return what is at most `depth` relations away from an entity, nearest first."""
    return forms.read(Neighbors, ask("graph.neighbors", locals(), may_repeat=True))


def shortest_path(source: str, target: str) -> GraphPath:
    """Return how two entities hang together, by as few relations as possible."""
    return forms.read(GraphPath, ask("graph.shortest_path", locals(), may_repeat=True))


def mentions(name: str, limit: int = 10) -> CompactSearchResult:
    """Return the notes that mention an entity, best first."""
    return forms.found(ask("graph.mentions", locals(), may_repeat=True))


def entities_of(hash: str) -> tuple[Entity, ...]:
    """Return the entities that a note mentions, in the order in which it does."""
    answer = ask("graph.entities_of", locals(), may_repeat=True)
    return tuple(forms.read(Entity, each) for each in answer)


def export_jsonl() -> str:
    """Return the graph as server-memory keeps it: lines of JSON."""
    return forms.text(ask("graph.export_jsonl", {}, may_repeat=True))


def import_jsonl(lines: str | Sequence[str]) -> ImportReport:
    """Take over the lines of a file of server-memory, and say what was new."""
    return forms.read(ImportReport, ask("graph.import_jsonl", locals(), may_repeat=True))


def _object(verb: str, given: Mapping[str, Any], *, may_repeat: bool = False) -> JsonObject:
    answer: JsonObject = ask(f"graph.{verb}", given, may_repeat=may_repeat)
    return answer
