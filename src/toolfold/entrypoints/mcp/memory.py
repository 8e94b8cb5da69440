"""Memory alone as an MCP server, for clients that want nothing else."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from toolfold import __version__
from toolfold.config.settings import Config
from toolfold.errors import NotFound, ToolfoldError
from toolfold.jsontypes import JsonObject
from toolfold.memory import definitions
from toolfold.memory.forms import as_text
from toolfold.memory.memories import Memories
from toolfold.memory.verbs import VERBS, Verb
from toolfold.relay.surface import load_surface

_PREFIX: Final = "memory_"
# Each definition costs the model tokens, so what another tool does as well is left out.
_SHOWN: Final = (
    *("store", "store_batch", "search", "recall", "search_by_tag", "list", "get", "update"),
    *("delete", "delete_by_tag", "restore", "health"),
)


def memory_tools() -> list[JsonObject]:
    """Return the tools of memory as clients see them; `surfaces/memory.json` holds the same."""
    return [_tool(VERBS[f"memory.{name}"]) for name in _SHOWN]


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
    surface = load_surface(config.settings.tools)
    tools = [types.Tool.model_validate(each) for each in surface["tools"]]
    answer = partial(_ANSWERS[config.settings.tools], memories, config.namespace)

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await answer(params.name, params.arguments or {})
        except ToolfoldError as error:
            return _text(str(error), is_error=True)

    return Server("toolfold", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_memory(memories: Memories, config: Config) -> None:
    """Serve until the client closes our standard input."""
    server = make_memory_server(memories, config)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _answer_notes(
    memories: Memories, namespace: str, name: str, arguments: Mapping[str, Any]
) -> types.CallToolResult:
    verb = name.removeprefix(_PREFIX)
    if not name.startswith(_PREFIX) or verb not in _SHOWN:
        shown = ", ".join(f"{_PREFIX}{each}" for each in _SHOWN)
        raise NotFound(f"There is no tool {name!r}; there are {shown}.")
    path = f"memory.{verb}"
    return _text(as_text(await memories.call(namespace, path, arguments)))


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], is_error=is_error)


_ANSWERS: Final = {"memory": _answer_notes}
