"""Composition root: Config in, running App out."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
from anyio.from_thread import check_cancelled

from toolfold.catalog.builtin import BuiltIn
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.large import MessageSizes
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.login.logins import Logins
from toolfold.catalog.login.stored import StoredLogin
from toolfold.catalog.openapi.upstream import ApiUpstream
from toolfold.catalog.orphans import Children
from toolfold.catalog.pool import UpstreamPool
from toolfold.catalog.search.tool_vectors import ToolVectorIndex
from toolfold.catalog.sending import Sender
from toolfold.catalog.transport import ServerStart
from toolfold.catalog.upstream import McpUpstream, Upstream
from toolfold.config.config import Config
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Limits, MemorySettings
from toolfold.embedding import BuiltinEmbedder, Embedder
from toolfold.errors import RunCrashed
from toolfold.execution.access import Reach
from toolfold.execution.background import BackgroundRuns
from toolfold.execution.border import Border, TrustServices
from toolfold.execution.calls import Answerers
from toolfold.execution.executor import modules
from toolfold.execution.modules.cache import Cache
from toolfold.execution.modules.runs import RunsModule
from toolfold.execution.modules.skills import SkillsModule
from toolfold.execution.modules.tools import DiscoveryModule
from toolfold.execution.open_questions import OpenQuestions
from toolfold.execution.runtime import Runtime
from toolfold.execution.service import RunConfigs, RunService
from toolfold.execution.sessions.parked import ParkedProcesses
from toolfold.execution.sessions.sessions import Sessions, sessions_of
from toolfold.execution.tiers import Tiers
from toolfold.execution.trust.approvals import approvals_of
from toolfold.execution.trust.asked_clients import CLIENTS_FILE, AskedClients
from toolfold.execution.trust.client_rules import policy_files
from toolfold.execution.trust.guard import is_denied
from toolfold.execution.trust.paused_runs import WaitingRuns
from toolfold.execution.trust.privacy_border import PrivacyRules
from toolfold.journal.journal import Journal, journal_of
from toolfold.jsontypes import JsonObject
from toolfold.memory.background import in_background
from toolfold.memory.consolidation.schedule import keep_consolidating
from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.documents.service import Documents
from toolfold.memory.events.service import Events
from toolfold.memory.forms import as_named, as_text
from toolfold.memory.graph.service import Graph
from toolfold.memory.memories import MakeServices, Memories, Progress, RequestContext
from toolfold.memory.note_vectors import NoteVectorizer as NoteMeaning
from toolfold.memory.note_vectors import reembed
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.archive import SqliteArchive
from toolfold.memory.sqlite.consolidation import SqliteConsolidations
from toolfold.memory.sqlite.documents import SqliteDocuments
from toolfold.memory.sqlite.events import SqliteEvents
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.graph import SqliteGraphStore
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.transfer.service import Transfer
from toolfold.memory.usage import UsageCounter
from toolfold.memory.verbs import Services
from toolfold.mounts import built_in_tools
from toolfold.policy.files import PolicyFiles
from toolfold.privacy.detect import masked
from toolfold.privacy.vaults import Vaults
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.monty import INTERPRETER, MontySandbox
from toolfold.sandbox.watchdog import ending_when_stalled
from toolfold.skills.library import Library
from toolfold.skills.places import open_library
from toolfold.skills.store import SkillStore
from toolfold.workspace.usage import Quota
from toolfold.workspace.verbs import MODULE, WorkspaceVerbs
from toolfold.workspace.workspace import Workspace

_PATIENCE_S: Final = 2.0
"""How long a first search may wait for the model; after that it goes by words."""

_LOOKERS: Final = 2
"""How many calls look at files at once: each takes Python's time from all else that goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """Everything that is running for one configuration."""

    config: Config
    catalog: Catalog
    discovery: DiscoveryModule
    runtime: Runtime
    runs: RunService
    tiers: Tiers
    sessions: Sessions
    border: Border
    reach: Reach
    privacy: PrivacyRules
    workspace: Workspace
    library: Library
    rules: PolicyFiles
    shared: "SharedResources"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResources:
    """What all apps of one process use together."""

    monty: MontySandbox
    cpython: CPythonSandbox
    upstreams: UpstreamPool
    embedder: Embedder
    waiting: WaitingRuns
    journal: Journal
    memories: Memories
    parked_processes: ParkedProcesses
    background_runs: BackgroundRuns
    run_configs: RunConfigs
    questions: OpenQuestions
    skill_store: SkillStore
    vaults: Vaults

    @property
    def stores(self) -> "Stores":
        """The stores that clients reach who see memory alone."""
        return Stores(self.memories, self.journal, self.vaults)


class Stores(NamedTuple):
    """The stores of ours that clients reach who see memory alone."""

    memories: Memories
    journal: Journal
    vaults: Vaults


@asynccontextmanager
async def running_stores(config: Config) -> AsyncIterator[Stores]:
    """Open these stores, and nothing else."""
    journal, vaults = journal_of(config), Vaults(config.directories.data)
    async with journal.running(), running_memories(config) as memories:
        with closing(vaults):
            yield Stores(memories, journal, vaults)


@asynccontextmanager
async def running_shared(config: Config) -> AsyncIterator[SharedResources]:
    """Start what apps share; `config` is the one of the process itself."""
    settings = config.settings
    monty = MontySandbox(settings.limits, workers=settings.workers)
    cpython = CPythonSandbox(settings.limits, workers=settings.workers)
    cache = ListingCache(config.directories.cache)
    logins = Logins(config.directories)
    logs = config.directories.state / "logs"

    children = Children(config.directories.state)
    sizes = MessageSizes(
        result_bytes=settings.limits.result_bytes,
        large_result_bytes=settings.limits.large_result_bytes,
        spool_directory=config.directories.cache / "answers",
    )

    def make(server: ServerConfig, start: ServerStart, digest: str) -> Upstream:
        upstream: Upstream
        if server.transport == "openapi":
            login = StoredLogin(server, logins) if server.may_log_in else None
            directory = config.directories.cache
            upstream = ApiUpstream(server, cache_directory=directory, sizes=sizes, auth=login)
        else:
            upstream = McpUpstream(
                server,
                start=start,
                cache=cache,
                logins=logins,
                log_file=logs / f"{_file_name(server.name)}-{digest}.log",
                connect_timeout_s=settings.connect_timeout_s,
                sizes=sizes,
            )
        upstream.on_connected = children.note
        upstream.cover_words = masked
        return upstream

    upstreams = UpstreamPool(make)
    journal = journal_of(config)
    embedder = BuiltinEmbedder()
    parked_processes = ParkedProcesses(settings.parked_sessions, idle_s=settings.parked_s)
    background_runs = BackgroundRuns()
    skill_store = SkillStore(config.directories.data / "skills.db")
    vaults = Vaults(config.directories.data)
    async with (
        ending_when_stalled(settings.limits.stall_s),
        journal.running(),
        running_memories(config, embedder) as memories,
        children.remembered(),
        monty.running(),
        cpython.running(),
        upstreams.running(),
        parked_processes.running(),
        background_runs.running(),
    ):
        with closing(skill_store), closing(vaults):
            yield SharedResources(
                monty=monty,
                cpython=cpython,
                upstreams=upstreams,
                embedder=embedder,
                waiting=WaitingRuns(settings.workers // 2),
                journal=journal,
                memories=memories,
                parked_processes=parked_processes,
                background_runs=background_runs,
                run_configs=RunConfigs(),
                questions=OpenQuestions(),
                skill_store=skill_store,
                vaults=vaults,
            )


@asynccontextmanager
async def running_app(  # noqa: PLR0915  # it makes all that is running
    config: Config, shared: SharedResources | None = None
) -> AsyncIterator[App]:
    """Start what `config` asks for; end every process of it when the context ends."""
    if shared is None:
        async with running_shared(config) as own, running_app(config, own) as app:
            yield app
        return
    limits = config.settings.limits
    checker = _checker(limits, shared)

    def refresh() -> None:
        catalog.refresh()
        checker.use(modules(catalog))
        discovery.note_listing()

    workspace = open_workspace(config)
    files = WorkspaceVerbs(workspace, max_chars=limits.result_bytes, check=check_cancelled)
    library = open_library(config, shared.skill_store)
    skills = SkillsModule(
        library,
        check=lambda skill: runtime.check_skill(skill),
        search=lambda query, limit: discovery.find_skills(query, limit),
    )
    start = ServerStart(directory=config.start_directory, path=config.search_path, home=config.home)
    with ExitStack() as leases:
        upstreams = [
            leases.enter_context(shared.upstreams.lease(server, start, on_listing=refresh))
            for server in config.servers
            if server.enabled
        ]
        built_ins = _built_ins(shared.memories, guest_place(config), files, skills)
        catalog = Catalog(
            upstreams,
            built_ins=built_ins,
            faults=config.faults,
            max_result_bytes=limits.result_bytes,
        )
        checker.use(modules(catalog))
        reach = _reach(catalog, upstreams, built_ins, limits)
        trust = _trust(config, shared.vaults)
        border = Border(shared.journal, trust)
        meaning = ToolVectorIndex(shared.embedder, config.directories.cache / "vectors")
        discovery = DiscoveryModule(
            catalog, meaning, library, is_denied=partial(is_denied, trust.rules)
        )
        tiers = Tiers(
            shared.monty.within(limits),
            shared.cpython.within(limits),
            setting=config.settings.sandbox,
        )
        sessions = sessions_of(
            config, interpreter=INTERPRETER, parked_processes=shared.parked_processes
        )
        runtime = Runtime(
            answerers=Answerers(
                border=border,
                reach=reach,
                discovery=discovery,
                runs=RunsModule(shared.background_runs, shared.journal, trust.approvals),
                cache=Cache(),
            ),
            tiers=tiers,
            checker=checker,
            limits=limits,
            waiting=shared.waiting,
            journal=shared.journal,
            sessions=sessions,
            workspace=workspace,
            library=library,
            scope=config.namespace,
        )
        async with (
            checker.running(),
            catalog.running(),
            anyio.create_task_group() as background,
        ):
            for warm in (checker.warm, meaning.keep_learning, partial(_warm, config, shared)):
                background.start_soon(warm)
            yield App(
                config=config,
                catalog=catalog,
                discovery=discovery,
                runtime=runtime,
                runs=RunService(
                    runtime,
                    shared.background_runs,
                    shared.journal,
                    trust.approvals,
                    config,
                    shared.run_configs,
                ),
                tiers=tiers,
                sessions=sessions,
                border=border,
                reach=reach,
                rules=trust.rules,
                privacy=trust.privacy,
                workspace=workspace,
                library=library,
                shared=shared,
            )
            background.cancel_scope.cancel()


def _trust(config: Config, vaults: Vaults) -> TrustServices:
    return TrustServices(
        rules=policy_files(config),
        approvals=approvals_of(config),
        clients=AskedClients(config.directories.state / CLIENTS_FILE),
        privacy=PrivacyRules(config, vaults),
        scope=config.namespace,
        on_failure=config.settings.audit.on_failure,
    )


def _reach(
    catalog: Catalog, upstreams: list[Upstream], built_ins: list[BuiltIn], limits: Limits
) -> Reach:
    sender = Sender(
        upstreams,
        built_ins,
        catalog.offered,
        max_result_bytes=limits.result_bytes,
        max_large_bytes=limits.large_result_bytes,
    )
    return Reach(catalog, sender)


def memory_border(config: Config, stores: Stores) -> tuple[Border, Reach]:
    """Return the border for clients that see memory alone, and what they reach beyond it."""
    limits = config.settings.limits
    built_ins = _memory_modules(stores.memories, guest_place(config))
    catalog = Catalog((), built_ins=built_ins, max_result_bytes=limits.result_bytes)
    border = Border(stores.journal, _trust(config, stores.vaults))
    return border, _reach(catalog, [], built_ins, limits)


def _checker(limits: Limits, shared: SharedResources) -> MontyChecker:
    return MontyChecker(
        time_limit_s=limits.check_time_s,
        memory_bytes=limits.memory_bytes,
        binary=shared.monty.binary,
    )


async def _warm(config: Config, shared: SharedResources) -> None:
    if config.settings.sandbox == "cpython":
        with suppress(RunCrashed):  # whoever runs code will hear of it
            await shared.cpython.warm()


def open_workspace(config: Config) -> Workspace:
    """Return the files that outlive the runs of a configuration."""
    return Workspace(config.workspace, Quota.of(config.settings.limits))


def guest_place(config: Config) -> RequestContext:
    """Return where what speaks for a model asks memory from."""
    return RequestContext(config.namespace, config.settings.memory, is_guest=True)


@asynccontextmanager
async def running_memories(
    config: Config, embedder: Embedder | None = None
) -> AsyncIterator[Memories]:
    """Hold memory ready; its store is opened with the first question, or now if it is there."""
    path = config.directories.data / "memory.db"
    made_by = embedder or BuiltinEmbedder()
    memories = Memories(lambda: _open_memory(path, made_by, config.settings.memory))
    if path.exists():
        memories.want()
    async with memories.running():
        yield memories


def reembed_memory(config: Config, progress: Callable[[int, int], None]) -> int:
    """Make all vectors of memory anew with our embedder; return how many.

    Raises:
        StoreError: The store cannot be opened or does not take them, or the model is missing.
    """

    async def main() -> int:
        file = SqliteFile(config.directories.data / "memory.db")
        async with file.running():
            return await reembed(SqliteStore(file), BuiltinEmbedder(), progress=progress)

    return anyio.run(main)


@asynccontextmanager
async def _open_memory(
    path: Path, embedder: Embedder, settings: MemorySettings
) -> AsyncIterator[MakeServices]:
    file = SqliteFile(path)
    store = SqliteStore(file, patience_s=_PATIENCE_S)
    consolidations = SqliteConsolidations(file)
    meaning = NoteMeaning(store, embedder, patience_s=_PATIENCE_S)
    usage = UsageCounter(consolidations)

    def make(place: RequestContext) -> Services:
        namespace, wishes = place.namespace, place.settings
        zone = ZoneInfo(wishes.time_zone) if wishes.time_zone else None
        week_start = ("monday", "sunday").index(wishes.week_start) * 6
        calendar: dict[str, Any] = {"zone": zone, "week_start": week_start}
        roots = [Path(root).expanduser() for root in wishes.ingest_roots]
        graph = Graph(SqliteGraphStore(file), store, namespace=namespace)
        return Services(
            notes=Memory(store, meaning, namespace=namespace, usage=usage, **calendar),
            events=Events(SqliteEvents(file), namespace=namespace, **calendar),
            consolidation=Consolidation(store, consolidations, namespace=namespace),
            documents=Documents(
                SqliteDocuments(file),
                meaning,
                namespace=namespace,
                roots=roots if place.is_guest else None,
            ),
            graph=graph,
            transfer=Transfer(SqliteArchive(file), graph, meaning, namespace=namespace),
        )

    async def consolidate() -> None:
        if hours := settings.consolidate_hours:
            await keep_consolidating(store, consolidations, every_hours=hours)

    async with (
        file.running(),
        store.running(),
        meaning.running(),
        usage.running(),
        in_background(consolidate),
    ):
        yield make


def _built_ins(
    memories: Memories, place: RequestContext, files: WorkspaceVerbs, skills: SkillsModule
) -> list[BuiltIn]:
    """Return what guest code can import without any server."""
    lookers = anyio.CapacityLimiter(_LOOKERS)

    async def look_at_files(name: str, arguments: JsonObject, *, as_bytes: bool = False) -> Any:
        given: Any = arguments
        look = partial(files.read_bytes, **given) if as_bytes else partial(files.call, name, given)
        return await anyio.to_thread.run_sync(look, limiter=lookers)

    tools = built_in_tools()
    return [
        *_memory_modules(memories, place),
        BuiltIn(name=MODULE, tools=tools[MODULE], serve=look_at_files, show=as_text),
        BuiltIn(name="skills", tools=tools["skills"], serve=skills.answer, show=str),
    ]


def _memory_modules(memories: Memories, place: RequestContext) -> list[BuiltIn]:
    def serve_in(module: str) -> Callable[..., Awaitable[Any]]:
        async def serve(
            name: str,
            arguments: JsonObject,
            *,
            progress: Progress | None = None,
            verbatim: Callable[..., Awaitable[Any]] | None = None,
        ) -> Any:
            if verbatim is not None:  # as server-memory answers
                return await verbatim((await memories.services(place)).graph, name, arguments)
            return await memories.call(place, f"{module}.{name}", arguments, progress=progress)

        return serve

    tools = built_in_tools()
    return [
        BuiltIn(
            name=module, tools=tools[module], serve=serve_in(module), form=as_named, show=as_text
        )
        for module in ("memory", "graph")
    ]


def _file_name(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", server)
