"""The whole product over an upstream that is not there, in one process.

The upstream answers at once, so what remains is what toolfold itself adds.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types

from toolfold.app import open_workspace
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.large import Sizes
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.login.logins import Logins
from toolfold.catalog.search.meaning import Meaning
from toolfold.catalog.tool import ListedTool
from toolfold.catalog.transport import Start
from toolfold.catalog.upstream import Upstream
from toolfold.config.config import load_config
from toolfold.config.paths import Directories
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Limits, Settings
from toolfold.embedding import MiniLmEmbedder
from toolfold.execution.calls import Answerers
from toolfold.execution.going import GoingRuns
from toolfold.execution.modules.caching import Cache
from toolfold.execution.modules.runs import RunsModule
from toolfold.execution.modules.tools import DiscoveryModule
from toolfold.execution.runtime import Runtime, Trust
from toolfold.execution.sessions.sessions import sessions_of
from toolfold.execution.stage import modules
from toolfold.execution.tiers import Tiers
from toolfold.execution.trust.approvals import approvals_of
from toolfold.execution.trust.waiting import WaitingRuns
from toolfold.journal.journal import Journal
from toolfold.jsontypes import JsonObject
from toolfold.policy.files import PolicyFiles
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.monty import INTERPRETER, MontySandbox
from toolfold.skills.book import Book
from toolfold.skills.places import open_library

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
_TOOLS = (ListedTool(name="call", input_schema=_SCHEMA),)


class NullUpstream(Upstream):
    """Answers every call with the same value, at once."""

    def __init__(self, directory: Path, answer: dict[str, Any]) -> None:
        super().__init__(
            ServerConfig(name="null", source=directory / "mcp.json", transport="stdio"),
            cache=ListingCache(directory),
            logins=Logins(Directories.from_environ({"TOOLFOLD_HOME": str(directory)})),
            log_file=directory / "null.log",
            connect_timeout_s=1.0,
            start=Start(directory=directory, path=""),
            sizes=Sizes(
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
    limits, settings = Limits(), Settings()
    upstream = NullUpstream(directory, answer)
    catalog = Catalog([upstream], max_result_bytes=limits.result_bytes)
    sandbox = MontySandbox(limits, workers=1)
    checker = MontyChecker(time_limit_s=limits.check_time_s, memory_bytes=limits.memory_bytes)
    checker.use(modules(catalog))
    journal = Journal(
        directory / "runs.db",
        days=settings.journal_days,
        max_bytes=settings.journal_bytes,
        code_bytes=limits.code_bytes,
    )
    config = load_config(cwd=directory, environ={"TOOLFOLD_HOME": str(directory)})
    library = open_library(config, Book(directory / "skills.db"))
    runtime = Runtime(
        answerers=Answerers(
            catalog=catalog,
            discovery=DiscoveryModule(catalog, Meaning(MiniLmEmbedder(), directory), library),
            runs=RunsModule(GoingRuns(), journal),
            cache=Cache(),
        ),
        tiers=Tiers(sandbox, None),
        checker=checker,
        limits=limits,
        waiting=WaitingRuns(1),
        journal=journal,
        sessions=sessions_of(config, interpreter=INTERPRETER),
        workspace=open_workspace(config),
        library=library,
        trust=Trust(
            rules=PolicyFiles(config), approvals=approvals_of(config), scope=config.namespace
        ),
    )
    async with journal.running(), sandbox.running(), checker.running(), catalog.running():
        yield runtime, journal
