"""A worker that runs the same calls through the whole product, over an upstream that is not there.

The upstream answers at once and in process, so what remains is what toolfold itself adds.
"""

import json
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import protocol

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.tool import ListedTool
from toolfold.catalog.upstream import Upstream
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Limits
from toolfold.execution.runtime import Runtime, modules
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.monty import MontySandbox

_SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}


class NullUpstream:
    """Answers every call with the same value, at once."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.name = "null"
        self.config = ServerConfig(name="null", source=Path("null.json"), transport="stdio")
        self.known_tools = (ListedTool(name="call", input_schema=cast(Any, _SCHEMA)),)
        self.fault = None
        self.protocol = None
        text = types.TextContent(type="text", text=json.dumps(answer))
        self._answer = types.CallToolResult(content=[text], structured_content=answer)

    async def tools(self, **_: object) -> tuple[ListedTool, ...]:
        return self.known_tools

    async def call(self, *_: object, **__: object) -> types.CallToolResult:
        return self._answer

    async def serve(self) -> None:
        await anyio.sleep_forever()


async def main() -> None:
    """Serve runs of the code."""
    told = protocol.spec()
    limits = Limits()
    upstream = cast(Upstream, NullUpstream(told["answer"]))
    catalog = Catalog([upstream], max_result_bytes=limits.result_bytes)
    sandbox = MontySandbox(limits, workers=1)
    checker = MontyChecker(time_limit_s=limits.check_time_s, memory_bytes=limits.memory_bytes)
    checker.use(modules(catalog))
    runtime = Runtime(catalog=catalog, sandbox=sandbox, checker=checker, limits=limits)

    async def work(number: int) -> None:
        result = await runtime.run(f"# run {number}\n{told['code']}")
        assert result.success, result.text

    async with sandbox.running(), checker.running(), catalog.running():
        await protocol.answer(work)


anyio.run(main)
