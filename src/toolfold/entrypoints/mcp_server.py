"""The MCP server: one tool, `execute_code`, over stdio."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from toolfold.app import App
from toolfold.execution.report import RunResult

_NAMED_SERVERS: Final = 12

_DESCRIPTION: Final = """\
Run Python in a sandbox where each tool of each connected MCP server is a typed function. \
Servers are modules: {servers}.
import tools: tools.search("open an issue") finds tools, tools.describe("github.create_issue") \
shows how to call one, tools.servers() lists servers; print what they return.
Call with keyword arguments, plain or awaited (asyncio.gather). Results are dicts, lists or text; \
failures raise RuntimeError. Do whole jobs in one run: loop, filter and sum in code. Only what you \
print and the last expression come back; show(image) returns an image. No network, files or pip."""


def tool_definition(servers: list[str]) -> types.Tool:
    """Return `execute_code` as clients see it. Its size does not grow with the servers."""
    named = ", ".join(servers[:_NAMED_SERVERS]) or "none yet"
    if len(servers) > _NAMED_SERVERS:
        named += f" and {len(servers) - _NAMED_SERVERS} more"
    return types.Tool(
        name="execute_code",
        description=_DESCRIPTION.format(servers=named),
        input_schema={
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
        },
        # Clients that load tools on demand would hide the only one there is.
        _meta={"anthropic/alwaysLoad": True},
    )


def make_server(app: App) -> Server[Any]:
    """Return the server of one app."""

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool_definition(sorted(app.catalog.modules))])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name != "execute_code":
            return _refusal(f"There is no tool {params.name!r}; the only one is execute_code.")
        arguments = dict(params.arguments or {})
        code = arguments.pop("code", None)
        if not isinstance(code, str) or arguments:
            return _refusal("execute_code takes one argument, `code`: the Python text to run.")
        async with _Progress(context.session.report_progress) as progress:
            result = await app.runtime.run(code, on_progress=progress.note)
        return _reply(result)

    return Server(
        "toolfold", version=version("toolfold"), on_list_tools=list_tools, on_call_tool=call_tool
    )


async def serve_stdio(app: App) -> None:
    """Serve until the client closes our standard input."""
    server = make_server(app)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _reply(result: RunResult) -> types.CallToolResult:
    """Text only: clients that see structured content show the model that instead."""
    images = [
        types.ImageContent(type="image", data=blob.base64, mime_type=blob.mime_type)
        for blob in result.images
    ]
    text = types.TextContent(type="text", text=result.text)
    return types.CallToolResult(content=[text, *images], is_error=not result.success)


def _refusal(message: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=message)], is_error=True
    )


class _Progress:
    """Tells the client of calls as they begin.

    Calls may begin faster than a client reads. Then the newest stands for those before it, so that
    a run never waits for its audience.
    """

    def __init__(self, send: Callable[..., Awaitable[None]]) -> None:
        self._send = send
        self._latest: tuple[int, str] | None = None
        self._news = anyio.Event()
        self._tasks = anyio.create_task_group()

    async def __aenter__(self) -> "_Progress":
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._tell)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(*error)

    def note(self, count: int, call: str) -> None:
        """Remember the newest call."""
        self._latest = (count, call)
        self._news.set()

    async def _tell(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            if self._latest is not None:
                count, call = self._latest
                await self._send(count, None, call)
