"""What would pass through a model over one MCP connection, counted as it passes."""

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

from toolfold.tokens import count_tokens

Entry = dict[str, Any]
"""How to start an MCP server, as an entry of `mcpServers` says it: `command`, `args`, `env`."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a job has cost so far."""

    calls: int = 0
    tokens: int
    tool_s: float = 0.0


class Conversation:
    """Stands in for the model: it would have sent each call made here, and read each reply."""

    def __init__(self, client: Client, definitions: str) -> None:
        self._client = client
        self._definition_tokens = count_tokens(definitions)
        self.begin()

    def begin(self) -> None:
        """Count anew, beginning with the tool definitions that the model carries."""
        self.spent = Spent(tokens=self._definition_tokens)

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool, and count what the model wrote for it, what it read, and the time between.

        Raises:
            RuntimeError: The tool failed.
        """
        started = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        elapsed_s = time.perf_counter() - started
        written, read = compact({"name": tool, "arguments": arguments}), text_of(result)
        self.spent = Spent(
            calls=self.spent.calls + 1,
            tokens=self.spent.tokens + count_tokens(written) + count_tokens(read),
            tool_s=self.spent.tool_s + elapsed_s,
        )
        if result.is_error:
            raise RuntimeError(f"{tool} failed: {read}")
        return result

    async def ask(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its answer as a value."""
        return (await self.call(tool, **arguments)).structured_content

    async def execute(self, code: str) -> str:
        """Call `execute_code` and return its answer, which is text."""
        return text_of(await self.call("execute_code", code=code))


@asynccontextmanager
async def conversing(server: Entry, log_file: Path) -> AsyncIterator[Conversation]:
    """Start a server and connect to it as an agent would; end it afterwards."""
    with log_file.open("w", encoding="utf-8") as log:
        parameters = StdioServerParameters(**server, cwd=log_file.parent)
        async with Client(stdio_client(parameters, errlog=log)) as client:
            definitions = [
                {"name": t.name, "description": t.description, "inputSchema": t.input_schema}
                for t in (await client.list_tools()).tools
            ]
            yield Conversation(client, compact(definitions))


def toolfold_over(server: Entry, home: Path) -> Entry:
    """Return an entry for toolfold that serves `server` to code, as the module `records`.

    All that toolfold keeps, it keeps in `home`.
    """
    config = home / "mcp.json"
    config.write_text(compact({"mcpServers": {"records": server}}), encoding="utf-8")
    return {
        "command": sys.executable,
        "args": ["-m", "toolfold", "mcp", "--no-daemon", "--config", str(config)],
        "env": {"TOOLFOLD_HOME": str(home)},
    }


def text_of(result: CallToolResult) -> str:
    """Return the text of a reply."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def compact(value: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
