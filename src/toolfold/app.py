"""Composition root: Config in, running App out."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.meaning import Meaning
from toolfold.catalog.upstream import Upstream
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Config
from toolfold.embedding import MiniLmEmbedder
from toolfold.execution.discovery_module import DiscoveryModule
from toolfold.execution.runtime import Runtime, modules
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.watchdog import ending_when_stalled


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """Everything that is running."""

    config: Config
    catalog: Catalog
    discovery: DiscoveryModule
    runtime: Runtime


@asynccontextmanager
async def running_app(config: Config) -> AsyncIterator[App]:
    """Start what `config` asks for; end every process of it when the context ends."""
    limits = config.settings.limits
    sandbox = MontySandbox(limits, workers=config.settings.workers)
    checker = MontyChecker(time_limit_s=limits.check_time_s, memory_bytes=limits.memory_bytes)
    cache = ListingCache(config.directories.cache)

    def refresh() -> None:
        catalog.refresh()
        checker.use(modules(catalog))

    def upstream(server: ServerConfig) -> Upstream:
        return Upstream(
            server,
            cache=cache,
            log_file=config.directories.state / "logs" / f"{_file_name(server.name)}.log",
            connect_timeout_s=config.settings.connect_timeout_s,
            on_listing=refresh,
        )

    catalog = Catalog(
        [upstream(server) for server in config.servers if server.enabled],
        faults=config.faults,
        max_result_bytes=limits.result_bytes,
    )
    checker.use(modules(catalog))
    meaning = Meaning(MiniLmEmbedder(), config.directories.cache / "vectors")
    discovery = DiscoveryModule(catalog, meaning)
    runtime = Runtime(
        catalog=catalog, discovery=discovery, sandbox=sandbox, checker=checker, limits=limits
    )
    async with (
        ending_when_stalled(limits.stall_s),
        sandbox.running(),
        checker.running(),
        catalog.running(),
        anyio.create_task_group() as background,
    ):
        background.start_soon(checker.warm)
        background.start_soon(meaning.keep_learning)
        yield App(config=config, catalog=catalog, discovery=discovery, runtime=runtime)
        background.cancel_scope.cancel()


def _file_name(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", server)
