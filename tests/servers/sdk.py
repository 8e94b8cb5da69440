"""The tools of `null.py` with the SDK, for the transports and messages that only it speaks."""

import json
from typing import Any

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server


def make_server() -> Server[Any]:
    """Build the server: `echo` reads, `put` writes and counts its calls."""
    tools = [tool("echo", "value", read_only=True), tool("put", "value", read_only=False)]
    stored: list[object] = []

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        value = (params.arguments or {}).get("value")
        if params.name == "echo":
            return text(value)
        stored.append(value)
        return text({"value": value, "count": len(stored)})

    return Server("null", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)


def tool(name: str, *parameters: str, read_only: bool) -> types.Tool:
    """Describe a tool whose parameters are all required and take any value."""
    schema = {
        "type": "object",
        "properties": {parameter: {} for parameter in parameters},
        "required": list(parameters),
    }
    return types.Tool(
        name=name,
        description=f"The {name} tool of a test server.",
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=read_only),
    )


def text(value: object) -> types.CallToolResult:
    """Answer with `value` as JSON in one text block."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(value))])


def serve_stdio(server: Server[Any]) -> None:
    """Serve over stdin and stdout until the client leaves."""

    async def serve() -> None:
        changes = NotificationOptions(tools_changed=True)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options(changes))

    anyio.run(serve)
