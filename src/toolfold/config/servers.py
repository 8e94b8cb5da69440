"""One MCP server that the user configured."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

TransportKind: TypeAlias = Literal["stdio", "http", "sse", "openapi"]
ServerScope: TypeAlias = Literal["shared", "session"]
Pairs: TypeAlias = tuple[tuple[str, str], ...]

CALL_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How we treat one server: the table `[servers.NAME]` of `config.toml`."""

    concurrency: int = 8
    """Calls in flight at once."""

    rate_per_s: float | None = None
    """Calls begun per second; None for no bound."""

    serialize_writes: bool = True
    """Whether calls to tools not marked read-only wait for each other."""

    scope: ServerScope = "shared"
    """Whether clients share one connection or have one each."""

    enabled: bool = True
    """Whether it may be started. An entry with `"disabled": true` stays off whatever this says,
    and a server that is off never becomes a `ServerConfig`.
    """

    privacy: str = ""
    """Whether what it answers is concealed, "on" or "off"; as `[privacy]` says where empty."""

    receives: tuple[str, ...] | None = None
    """The kinds of personal data that are revealed to it; None for no bound."""

    untrusted: bool = False
    """Whether rules may keep what it answers from other tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """How to log in where the server's own directions are not enough: `oauth` in its entry."""

    client_id: str = ""
    """One that was registered before, or the URL of a client metadata document; "" to register."""

    client_secret: str = field(default="", repr=False)
    callback_port: int | None = None
    """Where the browser comes back to; None for any free port."""

    metadata_url: str = ""
    """Where the authorization server describes itself; "" to find it as the protocol says."""

    scopes: tuple[str, ...] = ()
    """What to ask for; () for what the server names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig(ServerOptions):
    """How to reach one server that may be started: variables expanded, paths absolute."""

    name: str
    source: Path
    """The file that names it."""

    transport: TransportKind
    command: str = ""
    """For stdio; a path if it holds a slash, else looked up in PATH."""

    args: tuple[str, ...] = ()
    env: Pairs = field(default=(), repr=False)
    """What the entry gives, and no more of our environment than the SDK passes to every server."""

    cwd: Path | None = None
    """Where it starts; None for where we are."""

    url: str = ""
    """For http and sse; of an API where its server is, if that is to be another than it says."""

    headers: Pairs = field(default=(), repr=False)
    oauth: LoginOptions = field(default_factory=LoginOptions)
    spec: str = ""
    """Of an API its specification: a path or a URL."""

    variables: Pairs = ()
    """What the variables of its servers are."""

    auth: Pairs = field(default=(), repr=False)
    """Its credentials, by the name of a security scheme or by kind: bearer, basic, key."""

    timeout_s: float = CALL_TIMEOUT_S
    """One call. In the file `timeout` is milliseconds as in Claude Code, `timeout_s` seconds."""

    @property
    def may_log_in(self) -> bool:
        """Whether a stored login is used: not where the user wrote an `Authorization` header."""
        return self.transport != "stdio" and all(
            name.lower() != "authorization" for name, _ in self.headers
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFault:
    """A server that a file names and that cannot be used."""

    name: str
    source: Path
    reason: str

    def __str__(self) -> str:
        """One line for a person: where, which server, then what."""
        return f"{self.source}: server {self.name!r}: {self.reason}"


def config_hash(server: ServerConfig) -> str:
    """Return a name for what decides which tools the server lists, so a listing can be kept.

    Neither its name, its file, nor any limit counts; the order of `env` and `headers` does not.
    """
    identity = [
        server.transport,
        server.command,
        list(server.args),
        sorted(server.env),
        None if server.cwd is None else str(server.cwd),
        server.url,
        sorted(server.headers),
    ]
    if server.transport == "openapi":
        identity += [server.spec, sorted(server.variables)]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()
