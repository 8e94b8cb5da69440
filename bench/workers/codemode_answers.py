"""What FastMCP CodeMode answers to searches and for schemas. Runs in FastMCP's environment.

Reads `{"tools": {name: tool}, "queries": [...], "names": [...]}` on standard input and writes
`{"definitions": [...], "searches": [...], "schemas": [...]}`: texts, in the order of the questions.
"""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.tools import Tool


class Recorded(Tool):
    """A tool that is only listed."""

    async def run(self, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def main() -> None:
    asked = json.load(sys.stdin)
    tools = [
        Recorded(
            name=name, description=tool.get("description") or "", parameters=tool["inputSchema"]
        )
        for name, tool in asked["tools"].items()
    ]
    door = FastMCP("codemode", tools=tools, transforms=[CodeMode()])
    async with Client(door) as client:
        definitions = [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
            for tool in await client.list_tools()
        ]
        searches = [
            _text(await client.call_tool("search", {"query": query, "limit": 5}))
            for query in asked["queries"]
        ]
        schemas = [
            _text(await client.call_tool("get_schema", {"tools": [name]}))
            for name in asked["names"]
        ]
    json.dump({"definitions": definitions, "searches": searches, "schemas": schemas}, sys.stdout)


asyncio.run(main())
