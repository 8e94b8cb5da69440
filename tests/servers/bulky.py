"""An MCP server whose answers are as large as one asks for: `python bulky.py`."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import mcp_types as types
from mcp.server import Server
from null import serve_stdio, tool

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()


def row(number: int) -> dict[str, Any]:
    """Return one record of about a hundred bytes as JSON."""
    return {
        "id": number,
        "name": f"Zoë {number} \U0001f600",
        "note": 'say "hi"\n',
        "tags": ["a", "b"],
    }


def rows_of(size_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield records that have about so many bytes as a list of JSON."""
    return map(row, range(size_bytes // 98))


def make_server() -> Server[Any]:
    """Build the server."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        names = ("rows", "wrapped", "both", "structured", "words", "lines", "failing")
        listed = [tool(name, "size_bytes", read_only=True) for name in names]
        return types.ListToolsResult(tools=[*listed, tool("picture", read_only=True)])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "picture":
            image = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
            return types.CallToolResult(content=[image])
        return _ANSWERS[params.name](int((params.arguments or {})["size_bytes"]))

    return Server("bulky", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)


def _text(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


def _both(size: int) -> types.CallToolResult:
    found = {"rows": list(rows_of(size))}
    return _text(json.dumps(found), structured_content=found)


_ANSWERS = {
    "rows": lambda size: _text(json.dumps(list(rows_of(size)))),
    "wrapped": lambda size: _text(json.dumps({"rows": list(rows_of(size)), "total": 7})),
    "both": _both,
    "structured": lambda size: types.CallToolResult(
        content=[], structured_content={"rows": list(rows_of(size))}
    ),
    "words": lambda size: _text("word " * (size // 5)),
    "lines": lambda size: _text("".join(json.dumps(each) + "\n" for each in rows_of(size))),
    "failing": lambda size: _text("It went wrong. " * (size // 15), is_error=True),
}


if __name__ == "__main__":
    serve_stdio(make_server())
