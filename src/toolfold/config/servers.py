"""One MCP server that the user configured."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from toolfold.errors import ConfigError

# Put environment variables into the strings of a server's entry, and note where secrets belong.
#
# A secret is never put in here: a mark stands for it until its server is started. Neither files nor
# environments can hold a mark, which begins and ends with a NUL.

SecretKind: TypeAlias = Literal["keyring", "input", "cmd", "file"]

# `${VAR}` and `${VAR:-default}` as Claude Code writes them, `${env:VAR}` as Cursor and VS Code do.
_VARIABLE: Final = re.compile(
    r"\$\{(?:(keyring|input|cmd|file):(?!-)([^}]*)"
    r"|(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}"
)
_MARK: Final = re.compile("\0(keyring|input|cmd|file):([^\0]*)\0")


class SecretReference(NamedTuple):
    """One secret that an entry names, and where it is to be had."""

    kind: SecretKind
    name: str
    """Its name in the store, a command, or a path."""

    @property
    def is_stored(self) -> bool:
        """Whether `toolfold secrets` keeps it."""
        return self.kind in {"keyring", "input"}


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replace each variable once; what a variable holds is never expanded again.

    A variable that is set to nothing is set: the default stands in for an absent one only. Marks
    stand for secrets; see `with_secrets`.

    Raises:
        ConfigError: A variable is not set and has no default.
    """
    return _VARIABLE.sub(lambda match: _value(match, environ), text)


def references_in(text: str) -> tuple[SecretReference, ...]:
    """Return the secrets whose marks stand in a text."""
    return tuple(
        SecretReference(cast("SecretKind", kind), name) for kind, name in _MARK.findall(text)
    )


def with_secrets(text: str, value_of: Callable[[SecretReference], str]) -> str:
    """Put secrets in the place of their marks; what they hold is never looked at."""
    return _MARK.sub(
        lambda match: value_of(SecretReference(cast("SecretKind", match[1]), match[2])), text
    )


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    kind, secret, name, default = match.groups()
    if kind:
        if not secret.strip():
            raise ConfigError(f"${{{kind}:}} names nothing")
        return f"\0{kind}:{secret.strip()}\0"
    value = environ.get(name, default)
    if value is None:
        raise ConfigError(f"the variable {name} is not set and has no default")
    return value


TransportKind: TypeAlias = Literal["stdio", "http", "sse", "openapi", "graphql", "cli"]
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
class SecretInput:
    """What a file says of one of its `inputs`, as VS Code has them."""

    id: str
    description: str = ""
    default: str | None = None
    options: tuple[str, ...] = ()
    """What may be chosen; anything where it is empty."""

    is_secret: bool = True
    """Whether nobody may see it: VS Code calls it a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CliArgument:
    """One argument of a command: an option with a value, a switch, or a word by its position."""

    name: str
    option: str = ""
    """As `-n` or `--name`; "" for a word that stands by its position."""
    type: str = "string"
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_list: bool = False
    """Whether it can be given several times."""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CliCommand:
    """One thing that a program may be run for."""

    name: str
    words: tuple[str, ...] = ()
    """What always stands before the arguments: `issue`, `list`."""
    description: str = ""
    is_read_only: bool = False
    is_destructive: bool | None = None
    ends_options: bool = False
    """Whether the program takes `--` for the end of options."""
    arguments: tuple[CliArgument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig(ServerOptions):
    """How to reach one server that may be started: variables expanded, paths absolute.

    In `args`, `env`, `url`, `headers`, `auth` and the client's secret, marks stand for secrets
    until it is started; see `with_secrets`.
    """

    name: str
    source: Path
    """The file that names it."""

    transport: TransportKind
    command: str = ""
    """For stdio and cli; a path if it holds a slash, else looked up in PATH."""

    commands: tuple[CliCommand, ...] = ()
    """What a program may be run for; for cli."""

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
    """Of an API its specification, a path or a URL; of GraphQL its schema, or where it is."""

    variables: Pairs = ()
    """What the variables of its servers are."""

    auth: Pairs = field(default=(), repr=False)
    """Its credentials, by the name of a security scheme or by kind: bearer, basic, key."""

    inputs: tuple[SecretInput, ...] = ()
    """What is said of those that it uses."""

    revisions: Pairs = ()
    """Of each secret of the store that it uses, by name, which one it is; "" if there is none."""

    timeout_s: float = CALL_TIMEOUT_S
    """One call. In the file `timeout` is milliseconds as in Claude Code, `timeout_s` seconds."""

    @property
    def is_api(self) -> bool:
        """Whether it is an API, which a specification or a schema describes."""
        return self.transport in {"openapi", "graphql"}

    @property
    def is_program(self) -> bool:
        """Whether it is a program of this machine."""
        return self.transport in {"stdio", "cli"}

    @property
    def may_log_in(self) -> bool:
        """Whether a stored login is used: not where the user wrote an `Authorization` header."""
        return not self.is_program and all(
            name.lower() != "authorization" for name, _ in self.headers
        )

    @property
    def references(self) -> tuple[SecretReference, ...]:
        """The secrets that it names, each once."""
        pairs = (*self.env, *self.headers, *self.auth)
        texts = (*self.args, self.url, self.oauth.client_secret, *(text for _, text in pairs))
        return tuple(dict.fromkeys(each for text in texts for each in references_in(text)))

    @property
    def missing(self) -> tuple[str, ...]:
        """The secrets of the store that it needs and that were never given, by name."""
        known = {each.id for each in self.inputs if each.default is not None}
        return tuple(
            name for name, revision in self.revisions if not revision and name not in known
        )

    def with_secrets(self, value_of: Callable[[SecretReference], str]) -> "ServerConfig":
        """Return it with secrets in the place of their marks: only to be started."""

        def fill(text: str) -> str:
            return with_secrets(text, value_of)

        def fill_pairs(pairs: Pairs) -> Pairs:
            return tuple((name, fill(text)) for name, text in pairs)

        return replace(
            self,
            args=tuple(map(fill, self.args)),
            env=fill_pairs(self.env),
            url=fill(self.url),
            headers=fill_pairs(self.headers),
            oauth=replace(self.oauth, client_secret=fill(self.oauth.client_secret)),
            auth=fill_pairs(self.auth),
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
    if server.is_api:
        identity += [server.spec, sorted(server.variables)]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()
