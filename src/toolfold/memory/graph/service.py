"""The knowledge graph: what is known of people and things, and how they have to do with each other.

Nine of its verbs are the tools of server-memory, with the same answers; see `tools` for how they
are served under its name.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio.to_thread

from toolfold.errors import NotFound
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.graph import inputs
from toolfold.memory.graph.encoding import Encoded, GraphStore, as_value, decode
from toolfold.memory.graph.inputs import (
    ENTITY_GIVEN,
    check,
    check_depth,
    check_shape,
    done,
    entities_of,
    entity_json,
    lines_of,
    observed,
    relation_json,
    relations_of,
    texts,
)
from toolfold.memory.graph.mentions import around, find_mentions, phrases, rank_entities, shortest
from toolfold.memory.graph.models import (
    Entity,
    GraphPath,
    GraphSearchResult,
    ImportReport,
    Neighbor,
    Neighbors,
    RankedEntity,
    Relation,
    Subgraph,
    whole,
)
from toolfold.memory.inputs import check_limit, clean_name, clean_query
from toolfold.memory.models import CompactSearchResult, check_prefix
from toolfold.memory.ranking.rank import telling_words
from toolfold.memory.registry import verb
from toolfold.memory.store import Store

DEFAULT_LIMIT: Final = 10
DEFAULT_NEIGHBORS: Final = 50


class Graph:
    """What is known in one namespace: entities, observations of them, relations between them.

    Entities and relations are named by their own words; upper case counts. Every verb raises
    `BadInput` for a value that cannot be used, having changed nothing, and `StoreError` when the
    store does not answer.
    """

    def __init__(
        self,
        store: GraphStore,
        notes: Store,
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._notes = notes
        self._namespace = clean_name(namespace, "namespace")
        self._clock = clock
        self._made: tuple[int, str] | None = None

    @verb("adds", is_in_memory=False)
    async def create_entities(self, entities: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Create entities: `[{"name": "Ada", "entityType": "person", "observations": ["codes"]}]`.

        Returns `{"entities": […]}` with the new ones. An existing entity stays as it is;
        `add_observations` adds to it.
        """
        check("create_entities", {"entities": entities})
        added = await self._store.add_entities(self._namespace, entities_of(entities))
        return {"entities": [entity_json(each) for each in added]}

    @verb("adds", "POST /graph/relations", status=201, is_in_memory=False)
    async def create_relations(self, relations: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Create relations: `[{"from": "Ada", "to": "Acme", "relationType": "works at"}]`.

        Returns `{"relations": […]}` with the new ones.
        """
        check("create_relations", {"relations": relations})
        added = await self._store.add_relations(self._namespace, relations_of(relations))
        return {"relations": [relation_json(each) for each in added]}

    @verb("adds", is_in_memory=False)
    async def add_observations(self, observations: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Add observations: `[{"entityName": "Ada", "contents": ["likes tea"]}]`.

        Returns `{"results": [{"entityName": …, "addedObservations": […]}]}` with what is new.

        Raises:
            NotFound: There is no such entity; nothing was added to the others either.
        """
        check("add_observations", {"observations": observations})
        wanted = observed(observations, "contents")
        added = await self._store.add_observations(self._namespace, wanted)
        return {
            "results": [
                {"entityName": each.name, "addedObservations": list(new)}
                for each, new in zip(wanted, added, strict=True)
            ]
        }

    @verb("removes", is_in_memory=False)
    async def delete_entities(self, entityNames: Sequence[str]) -> JsonObject:
        """Delete entities and their relations for good."""
        check("delete_entities", {"entityNames": entityNames})
        await self._store.delete_entities(self._namespace, texts(entityNames))
        return done("Entities")

    @verb("removes", is_in_memory=False)
    async def delete_observations(self, deletions: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Delete for good: `[{"entityName": "Ada", "observations": ["likes tea"]}]`."""
        check("delete_observations", {"deletions": deletions})
        wanted = observed(deletions, "observations")
        await self._store.delete_observations(self._namespace, wanted)
        return done("Observations")

    @verb("removes", is_in_memory=False)
    async def delete_relations(self, relations: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Delete relations for good; they are given as to `create_relations`."""
        check("delete_relations", {"relations": relations})
        await self._store.delete_relations(self._namespace, relations_of(relations))
        return done("Relations")

    @verb("reads", is_in_memory=False)
    async def read_graph(self) -> JsonObject:
        """Return the whole graph: `{"entities": […], "relations": […]}`, in order of creation."""
        return as_value(await self.encoded("read_graph", {}))

    @verb("reads", is_in_memory=False)
    async def search_nodes(self, query: str) -> JsonObject:
        """Return entities with exactly this text in their name, type or an observation.

        Case does not matter. Their relations are returned too. `search_graph` also finds entities
        that have only some of the words.
        """
        return as_value(await self.encoded("search_nodes", {"query": query}))

    @verb("reads", is_in_memory=False)
    async def open_nodes(self, names: Sequence[str]) -> JsonObject:
        """Return the entities with these names, and their relations."""
        return as_value(await self.encoded("open_nodes", {"names": names}))

    async def encoded(self, tool: str, arguments: Mapping[str, Any]) -> Encoded:
        """Return what one of the three verbs above finds, for those who only pass it on."""
        check(tool, arguments)
        if tool == "search_nodes":
            return await self._store.containing(self._namespace, whole(arguments["query"]))
        if tool == "open_nodes":
            return await self._store.open(self._namespace, texts(arguments["names"]))
        return await self._store.read(self._namespace)

    async def read_once(self, make: Callable[[Encoded], str]) -> str:
        """Return what `make` makes of everything; the same as last time if nothing was written.

        What is large is made in a thread, so that others go on meanwhile.
        """
        number = await self._store.changed(self._namespace)
        if self._made is None or self._made[0] != number:
            found = await self._store.read(self._namespace)
            self._made = number, await anyio.to_thread.run_sync(make, found)
        return self._made[1]

    @verb("adds", "POST /graph/entities", status=201)
    async def create_entity(
        self, name: str, entity_type: str, observations: str | Sequence[str] | None = None
    ) -> Entity:
        """Create an entity, or add observations to it, and return it.

        An existing entity of that name gets the observations that it lacks.
        """
        told = [observations] if isinstance(observations, str) else observations or []
        given = {"name": name, "entity_type": entity_type, "observations": told}
        check_shape(ENTITY_GIVEN, given)
        entity = Entity(whole(name), whole(entity_type), texts(told))
        await self._store.merge(self._namespace, Subgraph((entity,)))
        found = decode(await self._store.open(self._namespace, [entity.name]))
        return found.entities[0] if found.entities else entity

    @verb("reads", "GET /graph/search")
    async def search_graph(self, query: str, limit: int = DEFAULT_LIMIT) -> GraphSearchResult:
        """Return the entities that match a query, best first; `total` counts all.

        Words in names count most, then in types, then in observations; rare words count more than
        common ones, and other forms of a word match. Scores are from 0 to 1.
        """
        limit, words = check_limit(limit), telling_words(clean_query(query).replace("_", " "))
        hits = await self._store.word_hits(self._namespace, words)
        scores = (
            rank_entities(hits, count=await self._store.count(self._namespace)) if words else []
        )
        shown = scores[:limit]
        entities = await self._store.load(self._namespace, [each.key for each in shown])
        best = [
            RankedEntity(*entities[each.key], each.score) for each in shown if each.key in entities
        ]
        return GraphSearchResult(tuple(best), len(scores), query)

    @verb("reads", "GET /graph/neighbors", is_in_memory=False)
    async def neighbors(
        self, name: str, depth: int = 1, limit: int = DEFAULT_NEIGHBORS
    ) -> Neighbors:
        """Return entities at most `depth` relations away from an entity, nearest first.

        Relations count in both directions. Each neighbour says by which relation it was reached.

        Raises:
            NotFound: Neither an entity nor a relation has that name.
        """
        name, depth, limit = self._name(name), check_depth(depth), check_limit(limit)
        steps = await around(name, self._relations_of, depth=depth)
        if not steps:
            await self._check_known(name)
        some = list(steps.items())[:limit]
        types = await self._store.types_of(self._namespace, [each for each, _ in some])
        found = [Neighbor(each, types.get(each), step.distance, step.via) for each, step in some]
        return Neighbors(name, tuple(found), len(steps))

    @verb("reads", "GET /graph/path", is_in_memory=False)
    async def shortest_path(self, source: str, target: str) -> GraphPath:
        """Return the shortest path between two entities.

        Relations count in both directions. Without a connection the path is empty.

        Raises:
            NotFound: Neither an entity nor a relation has one of these names.
        """
        source, target = self._name(source), self._name(target)
        found = await shortest(source, target, self._relations_of)
        if found is None or source == target:
            await self._check_known(source)
            await self._check_known(target)
        names, relations = found or ((), ())
        return GraphPath(source, target, tuple(names), tuple(relations))

    @verb("reads", is_in_memory=False)
    async def mentions(self, name: str, limit: int = DEFAULT_LIMIT) -> CompactSearchResult:
        """Return the notes that mention an entity, best first; `total` counts all that were found.

        A note mentions it if the words of its name stand there one after the other, in any case.
        They are looked for among the 1,000 notes that match these words best.
        """
        name, limit = self._name(name), check_limit(limit)
        return await find_mentions(
            self._notes, self._namespace, name, limit=limit, now=self._clock()
        )

    @verb("reads", is_in_memory=False)
    async def entities_of(self, hash: str) -> tuple[Entity, ...]:
        """Return the entities that a note mentions, in order of appearance.

        Raises:
            NotFound: There is no such note, or there are several.
        """
        note = await self._notes.get(self._namespace, check_prefix(hash))
        spoken = phrases(note.content)
        found = await self._store.spoken(self._namespace, spoken)
        return tuple(entity for phrase in spoken for entity in found.get(phrase, ()))

    @verb("reads", is_in_memory=False)
    async def export_jsonl(self) -> str:
        """Return the graph in the format of server-memory: JSON lines, entities first."""
        return inputs.written(await self._store.read(self._namespace))

    @verb("adds", is_in_memory=False)
    async def import_jsonl(self, lines: str | Sequence[str]) -> ImportReport:
        """Import lines in the format of server-memory, and return what was new.

        An existing entity gets the observations that it lacks. An unusable line is named, and the
        others are imported.
        """
        graph, faults = inputs.read(lines_of(lines))
        merged = await self._store.merge(self._namespace, graph)
        return ImportReport(*merged, tuple(faults))

    def _name(self, value: str) -> str:
        check_shape({"name": "string"}, {"name": value})
        return whole(value)

    async def _relations_of(self, names: Sequence[str]) -> Sequence[Relation]:
        return await self._store.relations_of(self._namespace, names)

    async def _check_known(self, name: str) -> None:
        found = await self._store.open(self._namespace, [name])
        if not found.entities and not await self._relations_of([name]):
            near = await self.search_graph(name, limit=3)
            names = ", ".join(repr(each.name) for each in near.entities)
            hint = f"Did you mean {names}?" if names else "`search_graph` finds entities by words."
            raise NotFound(f"No entity is named {name!r}. {hint}")
