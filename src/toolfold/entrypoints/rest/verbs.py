"""Memory, events, the graph, documents and consolidation, as resources of the REST API."""

from dataclasses import replace
from functools import cache
from typing import Any, Final

from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    call_verb,
    closed_object,
    page_of,
    paging,
    whole_object,
)
from toolfold.entrypoints.rest.schemas import returned_schema
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory import verbs as definitions
from toolfold.memory.inputs import MAX_LIMIT, MAX_NAME_CHARS, MAX_QUERY_CHARS
from toolfold.memory.models import as_json
from toolfold.memory.verbs import VERBS, Verb

_NAME: Final[JsonObject] = {"minLength": 1, "maxLength": MAX_NAME_CHARS}
_SHARE: Final[JsonObject] = {"minimum": 0, "maximum": 1}
_COUNT: Final[JsonObject] = {"minimum": 0, "maximum": MAX_LIMIT}
_BOUNDS: Final[dict[str, JsonObject]] = {
    "content": {"minLength": 1},
    "days_back": {"exclusiveMinimum": 0, "maximum": 100_000},
    "depth": {"minimum": 1, "maximum": 10},
    "duration_ms": {"minimum": 0},
    "event_type": _NAME,
    "id": _NAME,
    "k": _COUNT,
    "limit": _COUNT,
    "memory_type": _NAME,
    "min_score": _SHARE,
    "offset": {"minimum": 0, "maximum": 2**53, "default": 0},
    "outcome": _NAME,
    "path": {"minLength": 1},
    "pattern": {"minLength": 1},
    "position": {"minimum": -(2**53), "maximum": 2**53},
    "quality": _SHARE,
    "query": {"maxLength": MAX_QUERY_CHARS},
    "session_id": _NAME,
    "thread": _NAME,
}
"""What verbs refuse anyhow, for those who read the description."""


def verb_operations() -> list[Operation]:
    """Return the verbs that have a route, and the graph in pages."""
    routed = [_operation(verb) for verb in VERBS.values() if verb.route]
    return [
        *routed,
        _whole_graph(),
        _part_of_graph("entities", ["name", "entityType", "observations"]),
        _part_of_graph("relations", ["from", "to", "relationType"]),
    ]


@cache
def _operation(verb: Verb) -> Operation:
    return _paged(verb) if verb.route and verb.route.pages else _whole(verb)


def _whole(verb: Verb) -> Operation:
    """Return a verb as an operation; what is no object is wrapped in one."""
    assert verb.route is not None  # noqa: S101
    returns, wrap = returned_schema(verb), verb.route.wrap

    async def answer(request: RestRequest, arguments: JsonObject) -> Json:
        value = await _call(request, verb.path, arguments)
        return {wrap: value} if wrap else value

    return Operation(
        method=verb.route.method,
        path=verb.route.path,
        summary=definitions.description(verb).partition("\n")[0],
        tag=verb.category,
        takes=_taken(verb.route.method, verb.path, verb.route.path),
        returns=whole_object({wrap: returns}) if wrap else returns,
        answer=answer,
        status=verb.route.status,
    )


def _paged(verb: Verb) -> Operation:
    """Return a verb that lists as an operation; the answer says where the next page begins."""
    whole = _whole(verb)
    items = (verb.route and verb.route.pages) or ""
    schemas: Any = whole.returns["properties"]

    async def answer(request: RestRequest, arguments: JsonObject) -> Json:
        found: Any = await _call(request, verb.path, arguments)
        offset: Any = arguments.get("offset", 0)
        return _page(items, found[items], found["total"], offset)

    return replace(whole, returns=page_of(items, schemas[items]["items"]), answer=answer)


def _part_of_graph(part: str, fields: list[str]) -> Operation:
    """Return the pages of all entities, or of all relations."""
    item = closed_object({name: {} for name in fields}, required=tuple(fields))

    async def answer(request: RestRequest, arguments: JsonObject) -> Json:
        graph: Any = await _call(request, "graph.read_graph", {})
        offset: Any = arguments.get("offset", 0)
        limit: Any = arguments.get("limit", 100)
        return _page(part, graph[part][offset : offset + limit], len(graph[part]), offset)

    return Operation(
        method="GET",
        path=f"/graph/{part}",
        summary=f"Return the {part} of the graph, in the order of making.",
        tag="graph",
        takes=closed_object(paging(100, MAX_LIMIT)),
        returns=page_of(part, item),
        answer=answer,
    )


def _whole_graph() -> Operation:
    """Return the graph in one answer, for who draws it."""
    part: JsonObject = {"type": "array", "items": {"type": "object"}}

    async def answer(request: RestRequest, arguments: JsonObject) -> Json:
        return await _call(request, "graph.read_graph", arguments)

    return Operation(
        method="GET",
        path="/graph",
        summary="Return all entities and relations of the graph.",
        tag="graph",
        returns=whole_object({"entities": part, "relations": part}),
        answer=answer,
    )


def _page(name: str, items: list[Json], total: int, offset: int) -> Json:
    end = offset + len(items)
    return {name: items, "total": total, "next_offset": end if items and end < total else None}


async def _call(request: RestRequest, verb_path: str, arguments: JsonObject) -> Json:
    """Call a verb as guest code would: only files that the user allows are read."""
    return await call_verb(request, verb_path, arguments, form=as_json)


def _taken(method: str, verb_path: str, path: str) -> JsonObject:
    schema = definitions.input_schema(VERBS[verb_path])
    properties: Any = schema["properties"]
    required: Any = schema["required"]
    in_path = [name for name in properties if f"{{{name}}}" in path]
    in_body = method in {"POST", "PATCH"}
    bounded: JsonObject = {
        name: (described if in_body else _in_address(described)) | _bounds(verb_path, name)
        for name, described in properties.items()
    }
    return closed_object(bounded, required=tuple(dict.fromkeys([*required, *in_path])))


def _bounds(verb_path: str, name: str) -> JsonObject:
    """Return what is known of a parameter. An event may have happened without a word."""
    if (verb_path, name) == ("memory.record_event", "content"):
        return {}
    return _BOUNDS.get(name, {})


def _in_address(schema: JsonObject) -> JsonObject:
    """Return how a parameter is written in an address: several texts are one, with commas."""
    return {"type": "string"} if schema.get("type") == ["string", "array"] else schema
