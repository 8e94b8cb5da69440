"""Memory alone as an MCP server, for clients that want nothing else."""

import logging
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.server import Server

from toolfold import __version__
from toolfold.app import Stores, memory_border
from toolfold.config.config import Config
from toolfold.entrypoints.mcp.lines import CallTool, serve_stdio
from toolfold.entrypoints.mcp.progress import ProgressReporter
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution.verb_door import VerbDoor
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.memory import verbs as definitions
from toolfold.memory.graph import tools as graph_tools
from toolfold.memory.models import as_it_is, as_text
from toolfold.memory.verbs import VERBS
from toolfold.memory.verbs import Verb as MemoryVerb
from toolfold.relay.surface import load_surface

_log = logging.getLogger(__name__)

_PREFIX: Final = "memory_"


def memory_tools() -> list[JsonObject]:
    """Return the tools of memory as clients see them; `surfaces/memory.json` holds the same."""
    return [_tool(verb) for verb in VERBS.values() if verb.is_tool]


def _tool(verb: MemoryVerb) -> JsonObject:
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


def memory_door(stores: Stores, config: Config, client: str = "") -> VerbDoor:
    """Return what lets one client reach memory, and nothing else."""
    border, reach = memory_border(config, stores)
    origin = Origin(client=client, project=str(config.project or config.start_directory))
    return VerbDoor(border=border, reach=reach, origin=origin, door="memory")


def make_memory_server(stores: Stores, config: Config, *, client: str = "") -> Server[Any]:
    """Return the server of the tools that `config` asks for, in its namespace."""
    kind = config.settings.tools
    surface = load_surface(kind)
    tools = [types.Tool.model_validate(each) for each in surface["tools"]]
    door = memory_door(stores, config, client)
    answer = partial(_ANSWERS[kind], door)

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
        **(_graph_resources(door, surface) if kind == "graph" else {}),
    )


def graph_call(stores: Stores, config: Config, *, client: str = "") -> CallTool | None:
    """Return what calls the tools of the graph, if that is what clients are to see.

    Graphs are read whole, and may be large, so answers are passed on as they are.
    """
    if config.settings.tools != "graph":
        return None

    door = memory_door(stores, config, client)

    async def call(name: str, arguments: Any) -> str:
        if name not in graph_tools.TOOLS:
            return graph_tools.unknown_as_json(name)
        answer: str = await door.call(
            f"graph.{name}", arguments or {}, form=as_it_is, verbatim=graph_tools.call_as_json
        )
        return answer

    return call


def _graph_resources(door: VerbDoor, surface: dict[str, Any]) -> dict[str, Any]:
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
        try:
            found = await door.call(
                "graph.read_graph", {}, form=as_it_is, verbatim=graph_tools.call
            )
        except ToolfoldError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        contents = types.TextResourceContents(
            uri=params.uri, mime_type="application/json", text=found.text
        )
        return types.ReadResourceResult(contents=[contents])

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
    }


async def serve_memory(stores: Stores, config: Config) -> None:
    """Serve until the client closes our standard input."""
    server = make_memory_server(stores, config)
    await serve_stdio(server)


async def _answer_notes(
    door: VerbDoor, context: Any, name: str, arguments: Mapping[str, Any]
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

        text = await door.call(f"memory.{verb}", arguments, form=as_text, progress=report)
    return _text(text)


async def _answer_graph(
    door: VerbDoor, _context: Any, name: str, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    if name in graph_tools.TOOLS:
        path, verbatim = f"graph.{name}", graph_tools.call
        answer = await door.call(path, arguments, form=as_it_is, verbatim=verbatim)
    else:
        answer = graph_tools.unknown(name)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured,
        is_error=answer.is_error,
    )


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], is_error=is_error)


_ANSWERS: Final = {"memory": _answer_notes, "graph": _answer_graph}
