"""The two ways of the demo, and an account of what would pass through the model on each."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from demo_jobs import Job, Records
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult

from toolfold.tokens import count_tokens

BATCH = 40  # so many records fit into one reply of toolfold


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a job has cost so far."""

    calls: int = 0
    tokens: int
    tool_s: float = 0.0


class Conversation:
    """Stands in for the model: it would have sent each call made here, and read each reply."""

    def __init__(self, client: Client, definitions: Sequence[str]) -> None:
        self._client = client
        self.definition_tokens = sum(map(count_tokens, definitions))
        self.begin()

    def begin(self) -> None:
        """Count anew, beginning with the tool definitions that the model carries."""
        self.spent = Spent(tokens=self.definition_tokens)

    async def ask(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return its structured answer, or its text where it gives none.

        Raises:
            RuntimeError: The tool failed.
        """
        started = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        elapsed_s = time.perf_counter() - started
        written = _compact({"name": tool, "arguments": arguments})
        read = _read(result)
        self.spent = Spent(
            calls=self.spent.calls + 1,
            tokens=self.spent.tokens + count_tokens(written) + count_tokens(read),
            tool_s=self.spent.tool_s + elapsed_s,
        )
        if result.is_error:
            raise RuntimeError(f"{tool} failed: {read}")
        return result.structured_content or read


@asynccontextmanager
async def conversing(server: dict[str, Any], errors: TextIO) -> AsyncIterator[Conversation]:
    """Start the server of an `mcpServers` entry, connect to it as an agent would, end it."""
    async with Client(stdio_client(StdioServerParameters(**server), errlog=errors)) as client:
        definitions = [
            _compact({"name": t.name, "description": t.description, "inputSchema": t.input_schema})
            for t in (await client.list_tools()).tools
        ]
        yield Conversation(client, definitions)


class DirectCalls:
    """Each call to the server is one of the model's."""

    name = "direct"

    def __init__(self, model: Conversation) -> None:
        self.model = model

    async def do(self, job: Job, size: int) -> str:
        """Do a job and return its answer."""
        return await job.directly(self.model.ask, size)

    async def fill(self, records: Records) -> None:
        """Replace all that the graph holds."""
        old = [record["name"] for record in await self.read()]
        await self.model.ask("delete_entities", entityNames=old)
        await self.model.ask("create_entities", entities=records)

    async def read(self) -> Records:
        """Return all that the graph holds."""
        records: Records = (await self.model.ask("read_graph"))["entities"]
        return records


class Code:
    """Each call of the model is a piece of Python, in which the calls to the server happen."""

    name = "code"

    def __init__(self, model: Conversation) -> None:
        self.model = model

    async def execute(self, code: str) -> str:
        """Run guest code and return the reply."""
        return str(await self.model.ask("execute_code", code=code))

    async def do(self, job: Job, size: int) -> str:
        """Do a job and return its answer."""
        return await self.execute(job.code.replace("SIZE", str(size)))

    async def fill(self, records: Records) -> None:
        """Replace all that the graph holds."""
        old = [record["name"] for record in await self.read()]
        await self.execute(f"import records\nrecords.delete_entities(entityNames={old})")
        await self.execute(f"import records\nlen(records.create_entities(entities={records}))")

    async def read(self) -> Records:
        """Return all that the graph holds, read in parts that fit into a reply."""
        records: Records = []
        while True:
            part = f"records.read_graph()['entities'][{len(records)}:{len(records) + BATCH}]"
            batch = json.loads(await self.execute(f"import records\n{part}"))
            if not batch:
                return records
            records += batch


def _read(result: CallToolResult) -> str:
    """Return what Claude Code puts before the model: structured content where there is some."""
    structured = result.structured_content
    if structured is None:
        return "\n".join(block.text for block in result.content if block.type == "text")
    # What is no object comes wrapped; not to count that is in favour of direct calls.
    return _compact(structured["result"] if structured.keys() == {"result"} else structured)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
