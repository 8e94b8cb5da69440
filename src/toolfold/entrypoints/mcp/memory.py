"""Memory alone as an MCP server, for clients that want nothing else."""

import logging
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server

from toolfold import __version__
from toolfold.app import guest_place
from toolfold.config.config import Config
from toolfold.entrypoints.mcp.lines import CallTool
from toolfold.entrypoints.mcp.progress import ProgressReporter
from toolfold.errors import NotFound, ToolfoldError
from toolfold.jsontypes import JsonObject
from toolfold.memory import definitions
from toolfold.memory.forms import as_text
from toolfold.memory.graph import tools as graph_tools
from toolfold.memory.memories import Memories, RequestContext
from toolfold.memory.verbs import VERBS, Verb
from toolfold.relay.surface import load_surface

_log = logging.getLogger(__name__)

_PREFIX: Final = "memory_"


def memory_tools() -> list[JsonObject]:
    """Return the tools of memory as clients see them; `surfaces/memory.json` holds the same."""
    return [_tool(verb) for verb in VERBS.values() if verb.is_tool]


def _tool(verb: Verb) -> JsonObject:
    hints: JsonObject = {"readOnlyHint": verb.effect == "reads"}
    if verb.effect != "reads":
        hints["destructiveHint"] = verb.effect in {"removes", "destroys"}
        hints["idempotentHint"] = verb.may_repeat
    return {
        "name": f"{_PREFIX}{verb.name}",
        "description": definitions.description(verb).partition("\n")[0],
        "inputSchema": definitions.input_schema(verb),
        "annotations": hints,
    }


def make_memory_server(memories: Memories, config: Config) -> Server[Any]:
    """Return the server of the tools that `config` asks for, in its namespace."""
    kind = config.settings.tools
    surface = load_surface(kind)
    tools = [types.Tool.model_validate(each) for each in surface["tools"]]
    answer = partial(_ANSWERS[kind], memories, guest_place(config))

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await answer(context, params.name, params.arguments or {})
        except ToolfoldError as error:
            return _text(str(error), is_error=True)
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("%s ended with an error.", params.name)
            return _text(f"{params.name} failed; see `toolfold logs`.", is_error=True)

    return Server(
        "toolfold",
        version=__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **(_graph_resources(memories, guest_place(config), surface) if kind == "graph" else {}),
    )


def graph_call(memories: Memories, config: Config) -> CallTool | None:
    """Return what calls the tools of the graph, if that is what clients are to see.

    Graphs are read whole, and may be large, so answers are passed on as they are.
    """
    if config.settings.tools != "graph":
        return None

    async def call(name: str, arguments: Any) -> str:
        graph = (await memories.services(guest_place(config))).graph
        return await graph_tools.call_as_json(graph, name, arguments)

    return call


def _graph_resources(
    memories: Memories, request_context: RequestContext, surface: dict[str, Any]
) -> dict[str, Any]:
    """Return what answers for the one resource of the graph: all of it."""
    resources = [types.Resource.model_validate(each) for each in surface["resources"]]

    async def list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources)

    async def list_templates(_context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != graph_tools.RESOURCE:
            raise MCPError(types.INVALID_PARAMS, f"Resource {params.uri} not found")
        graph = (await memories.services(request_context)).graph
        found = await graph_tools.call(graph, "read_graph", {})
        contents = types.TextResourceContents(
            uri=params.uri, mime_type="application/json", text=found.text
        )
        return types.ReadResourceResult(contents=[contents])

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
    }


async def serve_memory(memories: Memories, config: Config) -> None:
    """Serve until the client closes our standard input."""
    server = make_memory_server(memories, config)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _answer_notes(
    memories: Memories,
    request_context: RequestContext,
    context: Any,
    name: str,
    arguments: Mapping[str, Any],
) -> types.CallToolResult:
    verb = name.removeprefix(_PREFIX)
    known = [each.name for each in VERBS.values() if each.is_tool]
    if not name.startswith(_PREFIX) or verb not in known:
        shown = ", ".join(f"{_PREFIX}{each}" for each in known)
        raise NotFound(f"There is no tool {name!r}; there are {shown}.")
    steps = count(1)
    async with ProgressReporter(context.session.report_progress) as progress:

        def report(done: int, total: int, what: str = "") -> None:
            # Clients want a number that only grows, and there may be several things to be done.
            progress.note(next(steps), None, f"{what} {done} of {total}".strip())

        value = await memories.call(request_context, f"memory.{verb}", arguments, progress=report)
    return _text(as_text(value))


async def _answer_graph(
    memories: Memories,
    request_context: RequestContext,
    _context: Any,
    name: str,
    arguments: Mapping[str, Any],
) -> types.CallToolResult:
    graph = (await memories.services(request_context)).graph
    answer = await graph_tools.call(graph, name, arguments)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured,
        is_error=answer.is_error,
    )


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], is_error=is_error)


_ANSWERS: Final = {"memory": _answer_notes, "graph": _answer_graph}
