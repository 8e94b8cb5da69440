"""Serve the tools of a recorded catalogue: `python replay.py FILE [--page-size N] [--answer FILE]`.

A call answers with its own name and arguments as JSON text, or with the text of a file.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server
from null import serve_stdio, text


def make_server(recorded: dict[str, Any], *, page_size: int = 50, answer: str = "") -> Server[Any]:
    """Build a server that lists the recorded tools in pages, as they were."""
    tools = [types.Tool.model_validate(tool) for tool in recorded["tools"]]

    async def list_tools(
        ctx: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        end = start + page_size
        next_cursor = str(end) if end < len(tools) else None
        return types.ListToolsResult(tools=tools[start:end], next_cursor=next_cursor)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if answer:
            return types.CallToolResult(content=[types.TextContent(type="text", text=answer)])
        return text({"tool": params.name, "arguments": params.arguments or {}})

    name = recorded.get("server", "replay")
    return Server(name, version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--page-size", type=int, default=50)
    parser.add_argument("--answer", type=Path)
    options = parser.parse_args()
    recorded = json.loads(options.file.read_text(encoding="utf-8"))
    answer = options.answer.read_text(encoding="utf-8") if options.answer else ""
    serve_stdio(make_server(recorded, page_size=options.page_size, answer=answer))


if __name__ == "__main__":
    main()
