"""A worker that does the work as an agent with code execution would: one call, holding code."""

import anyio
import mcp_types as types
import protocol
from mcp import Client


async def main() -> None:
    """Serve one piece of code over one connection."""
    told = protocol.spec()
    async with protocol.connected(told) as client:
        await _settle(client, told["tool"], told["settle"])
        hear = _hear if told.get("progress") else None

        async def work(number: int) -> None:
            # The number keeps the text new: no cache of checked code may answer for the work.
            code = f"# run {number}\n" + told["code"].replace(
                "$RECORD", told["records"][number % 50]
            )
            result = await client.call_tool(told["tool"], {"code": code}, progress_callback=hear)
            assert not result.is_error, _text(result)
            assert told["expected"] in _text(result), _text(result)

        await protocol.answer(work, repeats=told["repeats"])


async def _settle(client: Client, tool: str, code: str) -> None:
    """Wait until no server is starting any more: that would compete with what is measured."""
    while "starting" in (text := _text(await client.call_tool(tool, {"code": code}))):
        await anyio.sleep(0.2)
    assert "not usable" not in text, text


async def _hear(progress: float, total: float | None, message: str | None) -> None:
    """Take notice of progress, as a client with a screen does."""


def _text(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


anyio.run(main)
