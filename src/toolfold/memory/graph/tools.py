"""The nine tools of server-memory, answered word for word as it answers them."""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from toolfold.errors import BadInput, NotFound
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.graph.encoding import Encoded, as_line, as_text, as_value, quoted
from toolfold.memory.graph.inputs import ARGUMENTS, check, text_of
from toolfold.memory.graph.service import Graph

TOOLS: Final = tuple(ARGUMENTS)
RESOURCE: Final = "memory://knowledge-graph"
"""Where the whole graph is read, as the text of `read_graph`."""

_READING: Final = ("read_graph", "search_nodes", "open_nodes")
_INVALID: Final = "MCP error -32602:"


class GraphAnswer(NamedTuple):
    """What a tool answers: text, and beside it JSON unless it failed."""

    text: str
    structured: JsonObject | None
    is_error: bool = False


async def call(graph: Graph, tool: str, arguments: Mapping[str, Json] | None) -> GraphAnswer:
    """Call one of the nine tools. What is wrong with a call is in the answer.

    Raises:
        StoreError: The store does not answer, or does not take a write.
    """
    given = arguments or {}
    fault = _fault(tool, given)
    if fault is not None:
        return fault
    if tool in _READING:
        found = await graph.encoded(tool, given)
        return GraphAnswer(as_text(found), as_value(found))
    try:
        structured = await getattr(graph, tool)(**{name: given[name] for name in ARGUMENTS[tool]})
    except NotFound as error:
        return _failed(str(error))
    return GraphAnswer(text_of(structured), structured)


async def call_as_json(graph: Graph, tool: str, arguments: Mapping[str, Json] | None) -> str:
    """Do as `call` does, and return the result of `tools/call` as JSON on one line.

    A large graph is passed on without being taken apart, several times as quick.

    Raises:
        StoreError: As `call`.
    """
    if tool in _READING and _fault(tool, arguments or {}) is None:
        if tool == "read_graph":
            return await graph.read_once(_found)
        return _found(await graph.encoded(tool, arguments or {}))
    answer = await call(graph, tool, arguments)
    if answer.is_error:
        return f'{_content(answer.text)},"isError":true}}'
    return _result(answer.text, json.dumps(answer.structured))


def unknown(tool: str) -> GraphAnswer:
    """Return what a tool that is none of the nine answers."""
    return _failed(f"{_INVALID} Tool {tool} not found")


def unknown_as_json(tool: str) -> str:
    """Return the same as the result of `tools/call`."""
    return f'{_content(unknown(tool).text)},"isError":true}}'


def _fault(tool: str, arguments: Mapping[str, Json]) -> GraphAnswer | None:
    if tool not in ARGUMENTS:
        return unknown(tool)
    try:
        check(tool, arguments)
    except BadInput as error:
        return _failed(
            f"{_INVALID} Input validation error: Invalid arguments for tool {tool}: {error}"
        )
    return None


def _failed(text: str) -> GraphAnswer:
    return GraphAnswer(text, None, is_error=True)


def _found(graph: Encoded) -> str:
    return _result(as_text(graph), as_line(graph))


def _result(text: str, structured: str) -> str:
    return f'{_content(text)},"structuredContent":{structured}}}'


def _content(text: str) -> str:
    return f'{{"content":[{{"type":"text","text":{quoted(text)}}}]'
