"""A worker that does the work as an agent without toolfold would: one MCP call after the other."""

from typing import Any

import anyio
import protocol
from mcp import Client


async def main() -> None:
    """Serve one job over one connection."""
    told = protocol.spec()
    async with protocol.connected(told) as client:

        async def batch(_number: int) -> None:
            await _batch(client, told["observation"])

        async def single(number: int) -> None:
            await _call(client, "search_nodes", query=told["records"][number % 50])

        work = {"batch": batch, "single": single}[told["job"]]
        await protocol.answer(work, repeats=told["repeats"])


async def _batch(client: Client, observation: str) -> None:
    found = await _call(client, "search_nodes", query="Record_")
    for entity in found["entities"]:
        addition = {"entityName": entity["name"], "contents": [observation]}
        await _call(client, "add_observations", observations=[addition])


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error
    content: dict[str, Any] = result.structured_content
    return content


anyio.run(main)
