"""Composition root: Config in, running App out."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
from anyio.from_thread import check_cancelled
from anyio.from_thread import run as run_in_loop

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.large import MessageSizes
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.login.logins import Logins, StoredLogin
from toolfold.catalog.openapi.upstream import ApiUpstream
from toolfold.catalog.orphans import Children
from toolfold.catalog.pool import UpstreamPool
from toolfold.catalog.program import ProgramUpstream
from toolfold.catalog.search.tool_vectors import ToolVectorIndex
from toolfold.catalog.secrets import Secrets, ServerSecrets
from toolfold.catalog.sending import Sender
from toolfold.catalog.tool import BuiltIn
from toolfold.catalog.transport import ServerStart
from toolfold.catalog.upstream import McpUpstream, Upstream
from toolfold.config.config import Config, environment
from toolfold.config.servers import ServerConfig
from toolfold.config.settings import Limits
from toolfold.embedding import BuiltinEmbedder, Embedder
from toolfold.errors import ConfigError, RunCrashed
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
from toolfold.execution.sessions.folder import ParkedProcesses
from toolfold.execution.sessions.sessions import Sessions, sessions_of
from toolfold.execution.tiers import Tiers
from toolfold.execution.trust.approval_form import policy_files
from toolfold.execution.trust.approvals import SCHEMA as APPROVALS_SCHEMA
from toolfold.execution.trust.approvals import approvals_of, keep_expiring
from toolfold.execution.trust.asked_clients import CLIENTS_FILE, AskedClients
from toolfold.execution.trust.guard import is_denied
from toolfold.execution.trust.pinned_definitions import SCHEMA as DEFINITIONS_SCHEMA
from toolfold.execution.trust.preapproval import Preapprovals, WaitingRuns
from toolfold.execution.trust.privacy_border import PrivacyRules
from toolfold.execution.upkeep import keep_collections_short, keep_within_bounds
from toolfold.execution.verb_door import VerbDoors
from toolfold.journal.journal import Journal, journal_of
from toolfold.journal.runsdb import SCHEMA as JOURNAL_SCHEMA
from toolfold.jsontypes import JsonObject
from toolfold.memory.audit.service import NoteAudit
from toolfold.memory.consolidation.service import Consolidation, keep_consolidating
from toolfold.memory.documents.service import Documents
from toolfold.memory.events.service import Events
from toolfold.memory.graph.service import Graph
from toolfold.memory.memories import MakeServices, Memories, Progress, RequestContext
from toolfold.memory.models import as_named, as_text
from toolfold.memory.note_vectors import NoteVectorizer as NoteMeaning
from toolfold.memory.note_vectors import UsageCounter, reembed
from toolfold.memory.service import Memory
from toolfold.memory.sql.archive import SqlArchive
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase
from toolfold.memory.sql.consolidation import SqlConsolidations
from toolfold.memory.sql.copy import copy_memory
from toolfold.memory.sql.documents import SqlDocuments
from toolfold.memory.sql.events import SqlEvents
from toolfold.memory.sql.graph import SqlGraphStore
from toolfold.memory.sql.replica import SqlReplica
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.steps import SCHEMA as MEMORY_SCHEMA
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.store import Store, in_background
from toolfold.memory.sync.models import Machine
from toolfold.memory.sync.service import Sync
from toolfold.memory.transfer.service import Transfer
from toolfold.memory.verbs import Services
from toolfold.mounts import built_in_tools
from toolfold.policy.files import PolicyFiles
from toolfold.privacy.detect import find, masked
from toolfold.privacy.schema import SCHEMA as VAULTS_SCHEMA
from toolfold.privacy.store import Vaults, vaults_of
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.monty import INTERPRETER, MontySandbox
from toolfold.sandbox.threads import ending_when_stalled
from toolfold.skills.library import Library, open_library
from toolfold.skills.store import SCHEMA as SKILLS_SCHEMA
from toolfold.skills.store import SkillStore, skill_store_of
from toolfold.storage.migrations import DatabaseSchema
from toolfold.storage.secrets import SecretStore
from toolfold.storage.tables import (
    CopiedTable,
    copy_store,
    keeping_connections,
    needing_driver,
    open_tables,
)
from toolfold.workspace.usage import Quota
from toolfold.workspace.verbs import MODULE, WorkspaceVerbs
from toolfold.workspace.workspace import Workspace

# Few have a PostgreSQL, and its driver is an extra.
if TYPE_CHECKING:
    from toolfold.memory.postgres.connection import PostgresMemory
    from toolfold.memory.postgres.store import PostgresStore
    from toolfold.telemetry import Telemetry

_PATIENCE_S: Final = 2.0
"""How long a first search may wait for the model; after that it goes by words."""

_LOOKERS: Final = 2
"""How many calls look at files at once: each takes Python's time from all else that goes on."""


DATABASES: Final[dict[str, DatabaseSchema]] = {
    "memory.db": MEMORY_SCHEMA,
    "runs.db": JOURNAL_SCHEMA,
    "skills.db": SKILLS_SCHEMA,
    "vaults.db": VAULTS_SCHEMA,
    "approvals.db": APPROVALS_SCHEMA,
    "definitions.db": DEFINITIONS_SCHEMA,
}
"""The SQLite files of a data directory. None of them has to be there."""


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

    @contextmanager
    def using(self) -> Iterator["App"]:
        """Have this app for one request, as from an `AppSource` that has no other."""
        yield self

    @property
    def switched(self) -> anyio.Event:
        """Never set: no other app takes the place of this one."""
        return anyio.Event()


class AppSource(Protocol):
    """Whatever has the app for the next request of a client."""

    def using(self) -> AbstractContextManager[App]:
        """Have the app that is current now for the length of a request."""
        ...

    @property
    def switched(self) -> anyio.Event:
        """Set when another app takes the place of the current one; another one is here then."""
        ...


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
    preapprovals: Preapprovals
    skill_store: SkillStore
    vaults: Vaults
    verb_doors: VerbDoors
    telemetry: "Telemetry | None" = None
    """What traces runs; None where no collector is set."""

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
async def running_stores(
    config: Config, embedder: Embedder | None = None, *, may_fork: bool = False
) -> AsyncIterator[Stores]:
    """Open these stores, and nothing else."""
    journal, vaults = journal_of(config), vaults_of(config)
    async with (
        journal.running(may_fork=may_fork),
        running_memories(config, embedder) as memories,
    ):
        with closing(vaults):
            yield Stores(memories, journal, vaults)


@asynccontextmanager
async def running_shared(
    config: Config, *, opens_memory: bool = True
) -> AsyncIterator[SharedResources]:
    """Start what apps share; `config` is the one of the process itself.

    Memory that is there is opened at once unless `opens_memory` is false.
    """
    settings = config.settings
    monty = MontySandbox(settings.limits, workers=settings.workers)
    cpython = CPythonSandbox(settings.limits, workers=settings.workers)
    children = Children(config.directories.state)
    telemetry = _telemetry(config)
    maker = _UpstreamMaker(config, on_connected=children.note, telemetry=telemetry)
    upstreams = UpstreamPool(maker.make)
    journal = journal_of(config)
    embedder = BuiltinEmbedder()
    parked_processes = ParkedProcesses(settings.parked_sessions, idle_s=settings.parked_s)
    background_runs = BackgroundRuns()
    skill_store = skill_store_of(config)
    vaults = vaults_of(config)
    if telemetry is not None:
        journal.observers.append(telemetry)
    async with (
        telemetry.running() if telemetry else nullcontext(),
        ending_when_stalled(settings.limits.stall_s),
        journal.running(),
        running_memories(config, embedder, opens=opens_memory) as memories,
        children.remembered(),
        monty.running(),
        cpython.running(),
        upstreams.running(),
        parked_processes.running(),
        background_runs.running(),
        in_background(partial(keep_expiring, approvals_of(config), journal)),
        in_background(partial(keep_within_bounds, config)),
        in_background(keep_collections_short),
    ):
        with (
            closing(skill_store),
            closing(vaults),
            maker.secrets.kept_from_logs(),
            keeping_connections(settings.database_url),
        ):
            yield SharedResources(
                monty=monty,
                cpython=cpython,
                upstreams=upstreams,
                embedder=embedder,
                waiting=WaitingRuns(settings.workers // 2, on_wait=background_runs.note_wait),
                journal=journal,
                memories=memories,
                parked_processes=parked_processes,
                background_runs=background_runs,
                run_configs=RunConfigs(),
                questions=OpenQuestions(),
                preapprovals=Preapprovals(),
                skill_store=skill_store,
                vaults=vaults,
                verb_doors=verb_doors(Stores(memories, journal, vaults)),
                telemetry=telemetry,
            )


def _telemetry(config: Config) -> "Telemetry | None":
    """Return what sends traces to the collector of the settings; None where there is none.

    Raises:
        ConfigError: What sends them is not installed.
    """
    if not config.settings.telemetry.endpoint:
        return None
    try:
        from toolfold.telemetry import otlp_telemetry
    except ImportError as error:
        raise ConfigError(
            "`telemetry.endpoint` names a collector, and what sends traces is not installed: "
            "`pip install 'toolfold[otel]'`."
        ) from error
    return otlp_telemetry(config.settings.telemetry.endpoint)


class _UpstreamMaker:
    """Makes upstreams of every kind, for all apps of a process."""

    def __init__(
        self,
        config: Config,
        *,
        on_connected: Callable[[], None],
        telemetry: "Telemetry | None" = None,
    ) -> None:
        self._telemetry = telemetry
        directories, limits = config.directories, config.settings.limits
        self.secrets: Final = Secrets(SecretStore(directories.data), environment())
        self._settings = config.settings
        self._on_connected = on_connected
        self._cache, self._logins = ListingCache(directories.cache), Logins(directories)
        self._cache_directory, self._logs = directories.cache, directories.state / "logs"
        self._sizes = MessageSizes(
            result_bytes=limits.result_bytes,
            large_result_bytes=limits.large_result_bytes,
            spool_directory=directories.cache / "answers",
        )

    def make(self, server: ServerConfig, start: ServerStart, digest: str) -> Upstream:
        """Make the upstream of a server; see `MakeUpstream`."""
        upstream = self._made(server, start, digest)
        upstream.on_connected = self._on_connected
        upstream.cover_words = masked
        if self._telemetry is not None:
            self._telemetry.trace(upstream)
        return upstream

    def _made(self, server: ServerConfig, start: ServerStart, digest: str) -> Upstream:
        secrets = ServerSecrets(self.secrets, server, start.path, start.home)
        directory, sizes = self._cache_directory, self._sizes
        if server.is_api:
            login = StoredLogin(server, self._logins) if server.may_log_in else None
            return ApiUpstream(
                server, cache_directory=directory, sizes=sizes, auth=login, secrets=secrets
            )
        if server.transport == "cli":
            return ProgramUpstream(
                server, start=start, cache_directory=directory, sizes=sizes, secrets=secrets
            )
        return McpUpstream(
            server,
            start=start,
            cache=self._cache,
            logins=self._logins,
            log_file=self._logs / f"{_file_name(server.name)}-{digest}.log",
            connect_timeout_s=self._settings.connect_timeout_s,
            sizes=sizes,
            task_s=self._settings.limits.task_s,
            secrets=secrets,
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
        trust = _trust(config, shared.vaults, shared.preapprovals)
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


def _trust(
    config: Config, vaults: Vaults, preapprovals: Preapprovals | None = None
) -> TrustServices:
    return TrustServices(
        rules=policy_files(config),
        approvals=approvals_of(config),
        clients=AskedClients(config.directories.state / CLIENTS_FILE),
        privacy=PrivacyRules(config, vaults),
        scope=config.namespace,
        preapprovals=preapprovals or Preapprovals(),
        at_once=config.settings.keys.at_once,
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


def memory_border(
    config: Config, stores: Stores, place: RequestContext | None = None
) -> tuple[Border, Reach]:
    """Return the border for who sees memory alone, and what they reach beyond it.

    Clients ask from where models do; the user says from which place.
    """
    limits = config.settings.limits
    built_ins = _memory_modules(stores.memories, place or guest_place(config))
    catalog = Catalog((), built_ins=built_ins, max_result_bytes=limits.result_bytes)
    border = Border(stores.journal, _trust(config, stores.vaults))
    return border, _reach(catalog, [], built_ins, limits)


def verb_doors(stores: Stores) -> VerbDoors:
    """Return the doors by which the user's own scripts, hooks and commands reach memory."""

    def make(config: Config, namespace: str) -> tuple[Border, Reach]:
        formerly = config.former_notes if namespace == config.notes_namespace else ""
        place = RequestContext(namespace, config.settings.memory, formerly=formerly)
        return memory_border(config, stores, place)

    return VerbDoors(make)


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
    return RequestContext(
        config.notes_namespace,
        config.settings.memory,
        is_guest=True,
        formerly=config.former_notes,
    )


@asynccontextmanager
async def running_memories(
    config: Config, embedder: Embedder | None = None, *, opens: bool = True
) -> AsyncIterator[Memories]:
    """Hold memory ready; its store is opened with the first question, or now if it is there."""
    made_by = embedder or BuiltinEmbedder()
    memories = Memories(lambda: _open_memory(config, made_by))
    if opens and (config.settings.database_url or _memory_file(config).exists()):
        memories.want()
    async with memories.running():
        yield memories


def reembed_memory(config: Config, progress: Callable[[int, int], None]) -> int:
    """Make all vectors of memory anew with our embedder; return how many.

    Raises:
        StoreError: The store cannot be opened or does not take them, or the model is missing.
    """

    async def main() -> int:
        async with _open_backend(config, config.settings.database_url) as (_, store):
            return await reembed(store, BuiltinEmbedder(), progress=progress)

    return anyio.run(main)


class MemoryBackend(NamedTuple):
    """The database that memory is kept in, and its store of notes."""

    database: SqlDatabase
    store: Store


@asynccontextmanager
async def _open_backend(config: Config, url: str) -> AsyncIterator[MemoryBackend]:
    """Open the PostgreSQL at an address, or our own file where there is none.

    Raises:
        StoreError: It cannot be opened, or what speaks to it is not installed.
    """
    if url:
        database, store = _postgres_backend(url)
        async with database.running(), store.running():
            yield MemoryBackend(database, store)
    else:
        file = SqliteFile(_memory_file(config))
        notes = SqliteStore(file, patience_s=_PATIENCE_S)
        async with file.running(), notes.running():
            yield MemoryBackend(file, notes)


async def migrate_stores(
    config: Config, source: str, target: str, progress: Callable[[str, int], None]
) -> list[CopiedTable]:
    """Copy all that is kept from one database into another, and see that it is the same.

    Each is the address of a PostgreSQL, or empty for our own files. What the target holds is
    replaced; what it remembers must have come from the source.

    Raises:
        StoreError: One cannot be opened, the copy is not the same, or something would be lost.
    """
    async with (
        _open_backend(config, source) as (origin, _),
        _open_backend(config, target) as (copy, _),
    ):

        def read_all(ours: SqlConnection) -> list[CopiedTable]:
            def write_all(theirs: SqlConnection) -> list[CopiedTable]:
                return copy_memory(ours, theirs, progress)

            return run_in_loop(copy.write, write_all)

        copied = await origin.read(read_all)
    for file, schema in DATABASES.items():
        if schema.tables:
            path = config.directories.data / file
            ours, theirs = (open_tables(path, schema, url) for url in (source, target))
            copied += await anyio.to_thread.run_sync(
                copy_store, ours, theirs, schema.tables, progress
            )
    return copied


def _postgres_backend(url: str) -> "tuple[PostgresMemory, PostgresStore]":
    with needing_driver():
        from toolfold.memory.postgres.connection import PostgresMemory
        from toolfold.memory.postgres.store import PostgresStore
    database = PostgresMemory(url)
    return database, PostgresStore(database)


def _memory_file(config: Config) -> Path:
    return config.directories.data / "memory.db"


@asynccontextmanager
async def _open_memory(config: Config, embedder: Embedder) -> AsyncIterator[MakeServices]:
    async with (
        _open_backend(config, config.settings.database_url) as backend,
        _running_services(backend, embedder, config) as make,
    ):
        yield make


@asynccontextmanager
async def _running_services(
    backend: MemoryBackend, embedder: Embedder, config: Config
) -> AsyncIterator[MakeServices]:
    database, store = backend
    consolidations = SqlConsolidations(database)
    meaning = NoteMeaning(store, embedder, patience_s=_PATIENCE_S)
    usage = UsageCounter(consolidations)

    def make(place: RequestContext) -> Services:
        namespace, wishes = place.namespace, place.settings
        zone = ZoneInfo(wishes.time_zone) if wishes.time_zone else None
        week_start = ("monday", "sunday").index(wishes.week_start) * 6
        calendar: dict[str, Any] = {"zone": zone, "week_start": week_start}
        roots = [Path(root).expanduser() for root in wishes.ingest_roots]
        graph = Graph(SqlGraphStore(database), store, namespace=namespace)
        return Services(
            notes=Memory(store, meaning, namespace=namespace, usage=usage, **calendar),
            events=Events(SqlEvents(database), namespace=namespace, **calendar),
            consolidation=Consolidation(store, consolidations, namespace=namespace),
            documents=Documents(
                SqlDocuments(database),
                meaning,
                namespace=namespace,
                roots=roots if place.is_guest else None,
            ),
            graph=graph,
            transfer=Transfer(SqlArchive(database), graph, meaning, namespace=namespace),
            audits=NoteAudit(store, consolidations, namespace=namespace, find_personal=find),
            syncs=Sync(
                SqlReplica(database),
                meaning,
                namespace=namespace,
                machine=Machine(config.directories.data / "sync", environment),
            ),
        )

    async def consolidate() -> None:
        if hours := config.settings.memory.consolidate_hours:
            await keep_consolidating(store, consolidations, every_hours=hours)

    async with (
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
            read: Callable[[Services], Awaitable[Any]] | None = None,
            on_page: Callable[[Any], Awaitable[None]] | None = None,
        ) -> Any:
            path = f"{module}.{name}"
            if read is not None:  # what no verb answers, by the rules of the one that is nearest
                return await read(await memories.services(place))
            if verbatim is not None:  # as server-memory answers
                return await verbatim((await memories.services(place)).graph, name, arguments)
            if on_page is None:
                return await memories.call(place, path, arguments, progress=progress)
            async for page in memories.pages(place, path, arguments):
                await on_page(page)
            return None

        return serve

    tools = built_in_tools(for_users=not place.is_guest)
    return [
        BuiltIn(
            name=module, tools=tools[module], serve=serve_in(module), form=as_named, show=as_text
        )
        for module in ("memory", "graph")
    ]


def _file_name(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", server)
