"""The whole product over an upstream that is not there, in one process.

The upstream answers at once, so what remains is what toolfold itself adds.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types

from toolfold.app import running_app, running_shared
from toolfold.catalog.large import MessageSizes
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.login.logins import Logins
from toolfold.catalog.pool import UpstreamPool
from toolfold.catalog.secrets import Secrets, ServerSecrets
from toolfold.catalog.tool import ListedTool
from toolfold.catalog.transport import ServerStart
from toolfold.catalog.upstream import McpUpstream
from toolfold.config.config import load_config
from toolfold.config.paths import Directories
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Limits
from toolfold.execution.runtime import Runtime
from toolfold.journal.journal import Journal
from toolfold.jsontypes import JsonObject
from toolfold.storage.secrets import SecretStore

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
_TOOLS = (ListedTool(name="call", input_schema=_SCHEMA),)
_SERVERS = {"mcpServers": {"null": {"command": "never-started"}}}


class NullUpstream(McpUpstream):
    """Answers every call with the same value, at once."""

    def __init__(self, config: ServerConfig, directory: Path, answer: dict[str, Any]) -> None:
        super().__init__(
            config,
            cache=ListingCache(directory),
            logins=Logins(Directories.from_environ({"TOOLFOLD_HOME": str(directory)})),
            log_file=directory / "null.log",
            secrets=ServerSecrets(Secrets(SecretStore(directory), {}), config, "", ""),
            connect_timeout_s=1.0,
            task_s=1.0,
            start=ServerStart(directory=directory, path=""),
            sizes=MessageSizes(
                result_bytes=Limits().result_bytes, large_result_bytes=Limits().result_bytes
            ),
        )
        text = types.TextContent(type="text", text=json.dumps(answer))
        self._answer = types.CallToolResult(content=[text], structured_content=answer)

    @property
    def known_tools(self) -> tuple[ListedTool, ...]:
        return _TOOLS

    async def tools(self, *, fresh: bool = False) -> tuple[ListedTool, ...]:
        return _TOOLS

    async def run(self, *_: Any, **__: Any) -> Any:
        return self._answer

    async def serve(self) -> None:
        await anyio.sleep_forever()


@asynccontextmanager
async def null_runtime(
    directory: Path, answer: dict[str, Any]
) -> AsyncIterator[tuple[Runtime, Journal]]:
    """Run it, with a journal in that directory."""
    servers = directory / "mcp.json"
    servers.write_text(json.dumps(_SERVERS), encoding="utf-8")
    config = load_config(
        config_file=servers, cwd=directory, environ={"TOOLFOLD_HOME": str(directory)}
    )
    upstreams = UpstreamPool(lambda server, *_: NullUpstream(server, directory, answer))
    async with (
        running_shared(config) as shared,
        upstreams.running(),
        running_app(config, replace(shared, upstreams=upstreams)) as app,
    ):
        yield app.runtime, shared.journal
