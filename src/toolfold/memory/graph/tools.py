"""The nine tools of server-memory, answered word for word as it answers them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from toolfold.errors import BadInput, NotFound
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.graph.answers import text_of
from toolfold.memory.graph.inputs import ARGUMENTS, check
from toolfold.memory.graph.service import Graph

TOOLS: Final = tuple(ARGUMENTS)
RESOURCE: Final = "memory://knowledge-graph"
"""Where the whole graph is read, as the text of `read_graph`."""

_INVALID: Final = "MCP error -32602:"


class Answer(NamedTuple):
    """What a tool answers: text, and beside it JSON unless it failed."""

    text: str
    structured: JsonObject | None
    is_error: bool = False


async def call(graph: Graph, tool: str, arguments: Mapping[str, Json] | None) -> Answer:
    """Call one of the nine tools. What is wrong with a call is in the answer.

    Raises:
        StoreError: The store does not answer, or does not take a write.
    """
    if tool not in ARGUMENTS:
        return _failed(f"{_INVALID} Tool {tool} not found")
    given = arguments or {}
    try:
        check(tool, given)
    except BadInput as error:
        return _failed(
            f"{_INVALID} Input validation error: Invalid arguments for tool {tool}: {error}"
        )
    try:
        structured = await getattr(graph, tool)(**{name: given[name] for name in ARGUMENTS[tool]})
    except NotFound as error:
        return _failed(str(error))
    return Answer(text_of(structured), structured)


def _failed(text: str) -> Answer:
    return Answer(text, None, is_error=True)
