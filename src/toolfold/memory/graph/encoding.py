"""A graph as JSON in pieces: written once, joined into every form that is asked for. Pure.

Most of what is read of a graph is only passed on, so it is not taken apart on the way.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from toolfold.jsontypes import JsonObject
from toolfold.memory.graph.models import Entity, Relation, Subgraph, has_halves

# No text in JSON holds a line break, so this is never a part of one.
_BREAK: Final = ",\n"
_NEXT_LINE: Final = ",\n        "


EncodedEntity: TypeAlias = tuple[str, str, str]
"""Name, type and observations, each as JSON; these are a list with a line for each, see `packed`.
A plain tuple, as there may be a great many."""

EncodedRelation: TypeAlias = tuple[str, str, str]
"""From, to and type, each as JSON."""


class Encoded(NamedTuple):
    """Entities and relations, each in the order in which they were made."""

    entities: Sequence[EncodedEntity] = ()
    relations: Sequence[EncodedRelation] = ()


def quoted(text: str) -> str:
    """Return a text as JSON, as JavaScript writes it."""
    return _escaped(encode_basestring(text))


def packed(texts: Iterable[str]) -> str:
    """Return a list of texts as JSON, a line for each."""
    return _escaped(f"[{_BREAK.join(map(encode_basestring, texts))}]")


def unpacked(*lists: str) -> list[list[str]]:
    """Return the texts of packed lists; there may be a great many."""
    found: list[list[str]] = json.loads(f"[{','.join(lists)}]")
    return found


def joined(lists: Iterable[str]) -> str:
    """Return one packed list of several."""
    return f"[{_BREAK.join(each[1:-1] for each in lists if len(each) > 2)}]"


def encode(graph: Subgraph) -> Encoded:
    """Return a graph in pieces."""
    entities = [
        (quoted(name), quoted(kind), packed(observations))
        for name, kind, observations in graph.entities
    ]
    relations = [(quoted(each[0]), quoted(each[1]), quoted(each[2])) for each in graph.relations]
    return Encoded(entities, relations)


def decode(graph: Encoded) -> Subgraph:
    """Return the graph that is in pieces."""
    value: dict[str, Any] = json.loads(as_line(graph))
    entities = (
        Entity(each["name"], each["entityType"], tuple(each["observations"]))
        for each in value["entities"]
    )
    relations = (
        Relation(each["from"], each["to"], each["relationType"]) for each in value["relations"]
    )
    return Subgraph(tuple(entities), tuple(relations))


def as_value(graph: Encoded) -> JsonObject:
    """Return a graph as Python has it."""
    value: JsonObject = json.loads(as_line(graph))
    return value


def as_line(graph: Encoded) -> str:
    """Return a graph as JSON on one line."""
    entities = ",".join([f"{{{entity_line(each)}}}" for each in graph.entities])
    relations = ",".join([f"{{{relation_line(each)}}}" for each in graph.relations])
    return f'{{"entities":[{entities}],"relations":[{relations}]}}'


def entity_line(entity: EncodedEntity) -> str:
    """Return what stands in the braces of an entity, on one line."""
    name, kind, observations = entity
    observations = observations.replace(_BREAK, ",")
    return f'"name":{name},"entityType":{kind},"observations":{observations}'


def relation_line(relation: EncodedRelation) -> str:
    """Return what stands in the braces of a relation, on one line."""
    source, target, kind = relation
    return f'"from":{source},"to":{target},"relationType":{kind}'


def as_text(graph: Encoded) -> str:
    """Return a graph as JSON that is indented by two."""
    entities = _listed([_entity(each) for each in graph.entities])
    relations = _listed([_relation(each) for each in graph.relations])
    return f'{{\n  "entities": {entities},\n  "relations": {relations}\n}}'


def list_text(graph: Encoded) -> str:
    """Return entities or relations, whichever there are, as a list that is indented by two."""
    entities = [_entity(each) for each in graph.entities]
    return _outdented(_listed(entities or [_relation(each) for each in graph.relations]))


def results_text(results: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return names and what was added to each, as a list that is indented by two."""
    return _outdented(
        _listed(
            [
                f'{{\n      "entityName": {quoted(name)},\n'
                f'      "addedObservations": {_lines(packed(added))}\n    }}'
                for name, added in results
            ]
        )
    )


def _entity(entity: EncodedEntity) -> str:
    name, kind, observations = entity
    return (
        f'{{\n      "name": {name},\n      "entityType": {kind},\n'
        f'      "observations": {_lines(observations)}\n    }}'
    )


def _relation(relation: EncodedRelation) -> str:
    source, target, kind = relation
    return (
        f'{{\n      "from": {source},\n      "to": {target},\n      "relationType": {kind}\n    }}'
    )


def _lines(texts: str) -> str:
    if len(texts) == 2:
        return texts
    return f"[\n        {texts[1:-1].replace(_BREAK, _NEXT_LINE)}\n      ]"


def _listed(items: Sequence[str]) -> str:
    return "[\n    " + ",\n    ".join(items) + "\n  ]" if items else "[]"


def _outdented(text: str) -> str:
    return text.replace("\n  ", "\n")


def _escaped(text: str) -> str:
    """Write halves of surrogate pairs as escapes."""
    return text.encode("utf-8", "backslashreplace").decode() if has_halves(text) else text


# The GraphStore protocol: what keeps a knowledge graph, whichever database it is.
#
# As with notes, every method may be called by any number of tasks at once, whatever a method has
# returned from is kept, and namespaces do not see each other in any way.
#
# Two entities may have the same name, and two relations be equal: whoever adds both in one call
# gets both. Texts may hold any character, NUL and halves of surrogate pairs included.

MatchField: TypeAlias = Literal["name", "type", "observation"]


class Observed(NamedTuple):
    """Observations of the first entity that has that name."""

    name: str
    observations: tuple[str, ...]


class WordHit(NamedTuple):
    """That a word stands in an entity, and where."""

    key: int
    """Of the entity; keys grow in the order of making."""

    place: MatchField
    name: str
    """Of the entity, if that is where it stands."""


class Merged(NamedTuple):
    """How much was new."""

    entities: int
    observations: int
    relations: int


class GraphStore(Protocol):
    """Keeps a knowledge graph for each namespace.

    A write costs what is written, however large the graph is. Every method raises `StoreError` when
    the database does not answer or does not take a write; nothing has changed then.
    """

    async def add_entities(self, namespace: str, entities: Sequence[Entity]) -> list[Entity]:
        """Keep those whose names were not there before this call, and return them."""

    async def add_relations(self, namespace: str, relations: Sequence[Relation]) -> list[Relation]:
        """Keep those that were not there before this call, and return them."""

    async def add_observations(
        self, namespace: str, observed: Sequence[Observed]
    ) -> list[tuple[str, ...]]:
        """Keep, one after the other, what each entity lacked before its turn, and return that.

        Raises:
            NotFound: There is no such entity; nothing is kept of the others either.
        """

    async def merge(self, namespace: str, graph: Subgraph) -> Merged:
        """Keep what is not there yet.

        An entity whose name was there before this call gives the observations that none of that
        name has to the first of them; its type does not count.
        """

    async def delete_entities(self, namespace: str, names: Sequence[str]) -> None:
        """Delete all entities of these names, and all relations that begin or end there."""

    async def delete_observations(self, namespace: str, observed: Sequence[Observed]) -> None:
        """Delete observations, however often they are there."""

    async def delete_relations(self, namespace: str, relations: Sequence[Relation]) -> None:
        """Delete relations, however often they are there."""

    async def changed(self, namespace: str) -> int:
        """Return a number that grows whenever something is written; 0 for what never was."""

    async def read(self, namespace: str) -> Encoded:
        """Return everything."""

    async def open(self, namespace: str, names: Sequence[str]) -> Encoded:
        """Return all entities of these names, and all relations that begin or end at one."""

    async def containing(self, namespace: str, query: str) -> Encoded:
        """Return entities with a text that contains the query, and all relations that touch them.

        Texts are names, types and observations; case is told apart as by `matching.contains`.
        """

    async def word_hits(self, namespace: str, words: Sequence[str]) -> list[list[WordHit]]:
        """Return for each word where it stands, in this form or another of the same stem."""

    async def load(self, namespace: str, keys: Sequence[int]) -> dict[int, Entity]:
        """Return entities by their keys, without those deleted since."""

    async def count(self, namespace: str) -> int:
        """Return how many entities there are."""

    async def relations_of(self, namespace: str, names: Sequence[str]) -> list[Relation]:
        """Return all relations that begin or end at one of these names, each once, in order."""

    async def types_of(self, namespace: str, names: Sequence[str]) -> Mapping[str, str]:
        """Return the type of the first entity of each name, where there is one."""

    async def spoken(self, namespace: str, phrases: Sequence[str]) -> dict[str, list[Entity]]:
        """Return the entities whose names are spoken so, see `mentioning.spoken`, by phrase."""
