"""Composition root: Config in, running App out."""

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.login.logins import Logins
from toolfold.catalog.orphans import Children
from toolfold.catalog.pool import UpstreamPool
from toolfold.catalog.search.meaning import Meaning
from toolfold.catalog.transport import Start
from toolfold.catalog.upstream import Upstream
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Config
from toolfold.embedding import Embedder, MiniLmEmbedder
from toolfold.execution.discovery_module import DiscoveryModule
from toolfold.execution.journal import Journal
from toolfold.execution.pinned import PinnedCalls
from toolfold.execution.runtime import Runtime, modules
from toolfold.execution.waiting import WaitingRuns
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.watchdog import ending_when_stalled


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """Everything that is running for one configuration."""

    config: Config
    catalog: Catalog
    discovery: DiscoveryModule
    runtime: Runtime
    pinned: PinnedCalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all apps of one process use together."""

    sandbox: MontySandbox
    upstreams: UpstreamPool
    embedder: Embedder
    waiting: WaitingRuns
    journal: Journal


@asynccontextmanager
async def running_shared(config: Config) -> AsyncIterator[Shared]:
    """Start what apps share; `config` is the one of the process itself."""
    settings = config.settings
    sandbox = MontySandbox(settings.limits, workers=settings.workers)
    cache = ListingCache(config.directories.cache)
    logins = Logins(config.directories)
    logs = config.directories.state / "logs"

    children = Children(config.directories.state)

    def make(server: ServerConfig, start: Start, digest: str) -> Upstream:
        upstream = Upstream(
            server,
            start=start,
            cache=cache,
            logins=logins,
            log_file=logs / f"{_file_name(server.name)}-{digest}.log",
            connect_timeout_s=settings.connect_timeout_s,
            max_result_bytes=settings.limits.result_bytes,
        )
        upstream.on_connected = children.note
        return upstream

    upstreams = UpstreamPool(make)
    journal = Journal(
        config.directories.data / "runs.db",
        days=settings.journal_days,
        max_bytes=settings.journal_bytes,
        code_bytes=settings.limits.code_bytes,
    )
    async with (
        ending_when_stalled(settings.limits.stall_s),
        journal.running(),
        children.remembered(),
        sandbox.running(),
        upstreams.running(),
    ):
        yield Shared(
            sandbox=sandbox,
            upstreams=upstreams,
            embedder=MiniLmEmbedder(),
            waiting=WaitingRuns(settings.workers // 2),
            journal=journal,
        )


@asynccontextmanager
async def running_app(config: Config, shared: Shared | None = None) -> AsyncIterator[App]:
    """Start what `config` asks for; end every process of it when the context ends."""
    if shared is None:
        async with running_shared(config) as own, running_app(config, own) as app:
            yield app
        return
    limits = config.settings.limits
    checker = MontyChecker(time_limit_s=limits.check_time_s, memory_bytes=limits.memory_bytes)

    def refresh() -> None:
        catalog.refresh()
        checker.use(modules(catalog))

    start = Start(directory=config.start_directory, path=config.search_path, home=config.home)
    with ExitStack() as leases:
        upstreams = [
            leases.enter_context(shared.upstreams.lease(server, start, on_listing=refresh))
            for server in config.servers
            if server.enabled
        ]
        catalog = Catalog(upstreams, faults=config.faults, max_result_bytes=limits.result_bytes)
        checker.use(modules(catalog))
        meaning = Meaning(shared.embedder, config.directories.cache / "vectors")
        discovery = DiscoveryModule(catalog, meaning)
        runtime = Runtime(
            catalog=catalog,
            discovery=discovery,
            sandbox=shared.sandbox.within(limits),
            checker=checker,
            limits=limits,
            waiting=shared.waiting,
            journal=shared.journal,
        )
        async with (
            checker.running(),
            catalog.running(),
            anyio.create_task_group() as background,
        ):
            background.start_soon(checker.warm)
            background.start_soon(meaning.keep_learning)
            yield App(
                config=config,
                catalog=catalog,
                discovery=discovery,
                runtime=runtime,
                pinned=PinnedCalls(catalog, shared.journal),
            )
            background.cancel_scope.cancel()


def _file_name(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", server)
