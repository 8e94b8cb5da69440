"""What `config.toml` can say, with the defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from toolfold.config.layers import (
    ADDRESS,
    AMOUNT,
    APPROVALS,
    COUNT,
    DATABASE,
    ENDPOINT,
    HOURS,
    LOGS,
    MODE,
    ON_FAILURE,
    OWN_AMOUNT,
    OWN_COUNT,
    OWN_FLAG,
    OWN_NAMES,
    OWN_PAIRS,
    OWN_TEXT,
    PORT,
    SANDBOX,
    SCOPE,
    SOME_OR_NONE,
    STRICT_WHEN_FALSE,
    STRICT_WHEN_TRUE,
    SURFACE,
    WAYS,
    WEEKDAY,
    ZONE,
    Pairs,
    Setting,
    SettingKey,
    SettingKind,
    SettingsSchema,
    Value,
    Values,
)
from toolfold.config.servers import CALL_TIMEOUT_S, ServerOptions
from toolfold.relay.hooks import settings as hook_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The table `[hooks]`. A project may switch off those for memory, and no more."""

    session_start: bool = True
    """Whether notes are shown to the model when a conversation begins."""

    prompt: bool = True
    """Whether notes are shown when it turns to something else, or asks for them."""

    pre_compact: bool = True
    """Whether a conversation is recorded before the client shortens it."""

    session_end: bool = True
    """Whether it is recorded when it ends."""

    pre_tool_use: bool = True
    """Whether programs that only read run unasked, and the user is asked about others."""

    notes: int = hook_settings.NOTES
    """How many notes a conversation begins with, at most."""

    budget_tokens: int = hook_settings.BUDGET_TOKENS
    """How many tokens they may take; a prompt gets a third."""

    timeout_s: float = hook_settings.TIMEOUT_S
    """How long a client may be kept waiting."""

    prompt_timeout_s: float = hook_settings.PROMPT_TIMEOUT_S
    """The same for a prompt, behind which a person waits."""

    ways: tuple[str, ...] = hook_settings.WAYS
    """Who is asked, one after the other until one answers."""

    server: str = ""
    """The MCP server to ask last, by its name in the user's `mcp.json`."""

    message: bool = True
    """Whether the user is told in a line what was shown, and how many tokens that saves."""

    metrics: bool = False
    """Whether every hook is logged with the time that it took, not only one that fails."""


HOOK_KINDS: dict[str, SettingKind] = {
    **dict.fromkeys(("session_start", "prompt", "pre_compact", "session_end"), STRICT_WHEN_FALSE),
    "pre_tool_use": OWN_FLAG,
    **dict.fromkeys(("notes", "budget_tokens"), COUNT),
    **dict.fromkeys(("timeout_s", "prompt_timeout_s"), OWN_AMOUNT),
    "ways": WAYS,
    "server": OWN_TEXT,
    **dict.fromkeys(("message", "metrics"), STRICT_WHEN_FALSE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """The table `[privacy]`. A project may switch it on, and has no say in the rest."""

    mode: str = "off"
    """Whether personal data in what servers answer becomes placeholders, where a server's own
    table says nothing else."""

    fields: Pairs = ()
    """Paths of fields, and the kind of each; an empty kind exempts a field."""

    patterns: Pairs = ()
    """Kinds of one's own, and a regular expression for each."""


PRIVACY_KINDS: dict[str, SettingKind] = {"mode": MODE, "fields": OWN_PAIRS, "patterns": OWN_PAIRS}


_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one run may take: the table `[limits]` of `config.toml`."""

    guest_time_s: float = 20.0
    """Time in which guest code itself executes; waiting for tools does not count."""

    wall_time_s: float = 300.0
    """Time from the start of the run to its end, tools included."""

    calls: int = 10_000
    """Tool calls."""

    read_ahead: int = 8
    """Reads of a loop that are begun before their turn; 0 turns that off."""

    memory_bytes: int = 256 * _MIB
    """Memory of the guest."""

    recursion_depth: int = 500
    """Nested calls of guest functions."""

    code_bytes: int = 262_144
    """Length of the code, in UTF-8."""

    output_bytes: int = _MIB
    """What the guest prints, as captured."""

    reply_chars: int = 8_000
    """What the model is shown of it."""

    value_nodes: int = 200_000
    """Objects in one value that the guest sends, counted at each visit."""

    value_depth: int = 64
    """Nesting of such a value."""

    value_bytes: int = 8 * _MIB
    """Size of such a value."""

    result_bytes: int = 5_000_000
    """Size of one tool result; a larger one becomes a file in the workspace."""

    large_result_bytes: int = 256 * _MIB
    """Size of such a file; a still larger result is refused."""

    workspace_bytes: int = 1024 * _MIB
    """What all files of a project's workspace may hold together."""

    workspace_files: int = 10_000
    """Files and directories in it."""

    file_bytes: int = 256 * _MIB
    """Size of one of its files."""

    ask_s: float = 300.0
    """Time in which the user may answer what a server asks; the run's wall time stands still."""

    answer_s: float = 45.0
    """Time after which a client is answered though its run goes on."""

    task_s: float = 14_400.0
    """Time that one call may take whose server says that it is at work: by a task, or by telling
    how far it is. The run's wall time stands still."""

    approval_s: float = 3600.0
    """Time in which the user may approve what a run wants to do."""

    session_bytes: int = 64 * _MIB
    """What a session's variables may take on disk."""

    sleep_s: float = 60.0
    """Time asleep, all sleeps together."""

    check_time_s: float = 5.0
    """Time to check the code before it runs."""

    stall_s: float = 60.0
    """Time for which a hostile value may make the host stand still before it ends itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """What the user wants of memory: the table `[memory]`. A project has no say in it."""

    namespace: str = ""
    """Where notes belong to; by default the project, each to its own."""

    time_zone: str = ""
    """In which "yesterday" is understood; by default that of the system."""

    week_start: str = "monday"
    """The first day of "last week"."""

    ingest_roots: tuple[str, ...] = ()
    """Directories from which code of agents may ingest documents."""

    consolidate_hours: float = 0.0
    """How often notes are consolidated by themselves; 0 for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What holds for the journal: the table `[audit]`."""

    on_failure: str = "refuse"
    """While it cannot be written, calls that change anything are refused, or `continue`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """What the holder of each API key may ask for: the table `[keys]`."""

    at_once: int = 16
    """Runs and calls that are under way at one time."""

    per_minute: int = 600
    """Requests over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What is sent to whoever watches: the table `[telemetry]`. A project has no say in it."""

    endpoint: str = ""
    """The OpenTelemetry collector that gets traces, by OTLP over HTTP; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `config.toml` says. Each scalar can also come as `TOOLFOLD_<SECTION>_<KEY>`."""

    limits: Limits = field(default_factory=Limits)
    workers: int = 8
    """Sandbox workers, which bounds the runs at one time."""

    connect_timeout_s: float = 30.0
    """From the start of a server to the end of its handshake."""

    call_timeout_s: float = CALL_TIMEOUT_S
    """One call to a server whose entry says nothing else."""

    daemon_idle_s: float = 600.0
    """How long the daemon waits for a client before it ends itself."""

    linger_s: float = 10.0
    """How long servers stay up when the last client that needs them has left."""

    search_tools: bool = False
    """Whether clients see a tool that searches, beside the one that runs code."""

    pinned_tools: tuple[str, ...] = ()
    """Tools of servers that clients see and call directly, such as `github.create_issue`."""

    host: str = "127.0.0.1"
    """Where `toolfold serve` listens."""

    port: int = 8765
    """The same; 0 takes a free one."""

    allowed_hosts: tuple[str, ...] = ()
    """Names besides loopback ones that HTTP requests may be sent to: `name` or `name:port`."""

    allowed_origins: tuple[str, ...] = ()
    """Origins besides our own that web pages may call us from."""

    require_keys: bool = False
    """Whether HTTP requests must show an API key on loopback too, as behind a proxy."""

    request_time_s: float = 600.0
    """How long the answer to a REST request may take."""

    drain_s: float = 10.0
    """How long `toolfold serve` lets requests and runs finish when it is told to end."""

    database_url: str = field(default="", repr=False)
    """The PostgreSQL that memory is kept in, with its password; empty for a file of SQLite."""

    log_format: str = "text"
    """How the daemon and `toolfold serve` write their log: lines of `text`, or of `json`."""

    journal_days: int = 30
    """How long runs stay in the journal."""

    journal_bytes: int = 512 * _MIB
    """How large the journal may grow before the oldest runs go."""

    sessions: int = 200
    """How many sessions are kept for a project, the last used."""

    session_days: int = 30
    """How long one is kept that is not used."""

    parked_sessions: int = 4
    """How many CPython sessions keep their process between runs."""

    parked_s: float = 1800.0
    """How long they do."""

    tools: str = "code"
    """What clients see: one tool that runs code, or those of `memory` or of the `graph` alone."""

    approvals: str = "auto"
    """Whether the user is asked about tools that are marked destructive, where no rule of theirs
    decides: `always`, `never`, or `auto`, where the client can ask."""

    sandbox: str = "auto"
    """Which interpreter runs code: `monty`, `cpython`, or whichever fits, `auto`."""

    memory: MemorySettings = field(default_factory=MemorySettings)

    hooks: HookSettings = field(default_factory=HookSettings)

    privacy: PrivacySettings = field(default_factory=PrivacySettings)

    audit: AuditSettings = field(default_factory=AuditSettings)

    keys: KeySettings = field(default_factory=KeySettings)

    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

    servers: Mapping[str, ServerOptions] = field(default_factory=dict)
    """By server name, the tables `[servers.NAME]`."""


def settings_schema() -> SettingsSchema:
    """Derive the settings there are from the dataclasses that hold them."""
    settings, limits, options = Settings(), Limits(), ServerOptions()
    scalars: dict[SettingKey, Value] = {
        (name,): getattr(settings, name)
        for name in (
            *("workers", "connect_timeout_s", "call_timeout_s"),
            *("daemon_idle_s", "linger_s"),
        )
    }
    scalars |= {("limits", each.name): getattr(limits, each.name) for each in fields(limits)}
    kinds = {
        "concurrency": COUNT,
        "rate_per_s": AMOUNT,
        "serialize_writes": STRICT_WHEN_TRUE,
        "scope": SCOPE,
        "enabled": STRICT_WHEN_FALSE,
        "privacy": MODE,
        "receives": OWN_NAMES,
        "untrusted": STRICT_WHEN_TRUE,
    }
    numbers = {
        key: Setting(COUNT if isinstance(default, int) else AMOUNT, default)
        for key, default in scalars.items()
    }
    numbers["limits", "read_ahead"] = Setting(SOME_OR_NONE, limits.read_ahead)
    surface = {
        ("search_tools",): Setting(STRICT_WHEN_FALSE, settings.search_tools),
        ("pinned_tools",): Setting(OWN_NAMES, settings.pinned_tools),
        ("journal_days",): Setting(OWN_COUNT, settings.journal_days),
        ("journal_bytes",): Setting(OWN_COUNT, settings.journal_bytes),
        ("sessions",): Setting(COUNT, settings.sessions),
        ("session_days",): Setting(COUNT, settings.session_days),
        ("parked_sessions",): Setting(COUNT, settings.parked_sessions),
        ("parked_s",): Setting(AMOUNT, settings.parked_s),
        ("log_format",): Setting(LOGS, settings.log_format),
        ("database_url",): Setting(DATABASE, settings.database_url),
        ("host",): Setting(ADDRESS, settings.host),
        ("port",): Setting(PORT, settings.port),
        ("allowed_hosts",): Setting(OWN_NAMES, settings.allowed_hosts),
        ("allowed_origins",): Setting(OWN_NAMES, settings.allowed_origins),
        ("require_keys",): Setting(OWN_FLAG, settings.require_keys),
        ("request_time_s",): Setting(AMOUNT, settings.request_time_s),
        ("drain_s",): Setting(AMOUNT, settings.drain_s),
        ("tools",): Setting(SURFACE, settings.tools),
        ("sandbox",): Setting(SANDBOX, settings.sandbox),
        ("approvals",): Setting(APPROVALS, settings.approvals),
    }
    memory = {
        ("memory", name): Setting(kind, getattr(settings.memory, name))
        for name, kind in {
            "namespace": OWN_TEXT,
            "time_zone": ZONE,
            "week_start": WEEKDAY,
            "ingest_roots": OWN_NAMES,
            "consolidate_hours": HOURS,
        }.items()
    }
    hooks = {
        ("hooks", name): Setting(kind, getattr(settings.hooks, name))
        for name, kind in HOOK_KINDS.items()
    }
    privacy = {
        ("privacy", name): Setting(kind, getattr(settings.privacy, name))
        for name, kind in PRIVACY_KINDS.items()
    }
    audit = {("audit", "on_failure"): Setting(ON_FAILURE, settings.audit.on_failure)}
    keys = {
        ("keys", each.name): Setting(COUNT, getattr(settings.keys, each.name))
        for each in fields(settings.keys)
    }
    telemetry = {("telemetry", "endpoint"): Setting(ENDPOINT, settings.telemetry.endpoint)}
    return SettingsSchema(
        settings=numbers | surface | memory | hooks | privacy | audit | keys | telemetry,
        server_options={
            name: Setting(kind, getattr(options, name)) for name, kind in kinds.items()
        },
    )


def settings_of(values: Values) -> Settings:
    """Return what checked values say, and the defaults for the rest."""
    scalars: dict[str, Any] = {}
    tables: dict[str, dict[str, Any]] = {}
    servers: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        match key:
            case ("servers", server, option):
                servers.setdefault(server, {})[option] = value
            case (table, name):
                tables.setdefault(table, {})[name] = value
            case _:
                scalars[key[0]] = value
    return Settings(
        limits=Limits(**tables.get("limits", {})),
        memory=MemorySettings(**tables.get("memory", {})),
        hooks=HookSettings(**tables.get("hooks", {})),
        privacy=PrivacySettings(**tables.get("privacy", {})),
        audit=AuditSettings(**tables.get("audit", {})),
        keys=KeySettings(**tables.get("keys", {})),
        telemetry=TelemetrySettings(**tables.get("telemetry", {})),
        servers={name: ServerOptions(**options) for name, options in servers.items()},
        **scalars,
    )
