"""Read the servers that an `mcp.json` names, one entry at a time."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolfold.config.cli_entry import read_commands
from toolfold.config.entry import ServerEntry, is_toolfold
from toolfold.config.jsonc import JsonDocument, parse_jsonc
from toolfold.config.paths import home_of
from toolfold.config.servers import (
    CALL_TIMEOUT_S,
    LoginOptions,
    Pairs,
    SecretInput,
    SecretReference,
    ServerConfig,
    ServerFault,
    ServerOptions,
    TransportKind,
    expand,
    references_in,
)
from toolfold.errors import BadInput, ConfigError, ConfigFault, shown
from toolfold.jsontypes import Json, JsonObject
from toolfold.storage.files import read_file
from toolfold.storage.secrets import check_name

# Claude Code, Cursor and Claude Desktop; VS Code; Codex.
TABLES = ("mcpServers", "servers", "mcp_servers")

_TRANSPORTS: Mapping[str, TransportKind] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "sse": "sse",
    "openapi": "openapi",
    "graphql": "graphql",
    "cli": "cli",
}
_UNREAD = ("headersHelper", "envFile")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What decides about a server and does not stand in its entry."""

    environ: Mapping[str, str]
    call_timeout_s: float = CALL_TIMEOUT_S
    options: Mapping[str, ServerOptions] = field(default_factory=dict)
    """By server name, the options that the user set."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Of each secret that was given, by name, which one it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFile:
    """What one file says: by name a server, or its fault, or None if it is not to be started."""

    servers: Mapping[str, ServerConfig | ServerFault | None]
    faults: tuple[ConfigFault, ...]


def parse_servers(
    source: Path,
    content: bytes,
    context: ServerContext,
    *,
    cwd: Path | None = None,
    is_project: bool = False,
) -> ServerFile:
    """Read every entry; one that cannot be used leaves the others alone.

    Disabled servers, and toolfold itself, are not to be started.

    A server whose entry does not say where it starts will start in `cwd`. Only the user's own files
    may take secrets from commands and files, and so none that `is_project`.

    Raises:
        ConfigError: The file as a whole cannot be used; the message does not name it.
    """
    document = parse_jsonc(content)
    place = _EntryLocation(
        source=source,
        environ=context.environ,
        cwd=cwd,
        is_project=is_project,
        inputs=_inputs(document),
    )
    found: dict[str, ServerConfig | ServerFault | None] = {}
    for name, value in _entries(document).items():
        try:
            found[name] = _server(ServerEntry(name, value), place, context)
        except ConfigError as error:
            found[name] = ServerFault(name=shown(name), source=source, reason=shown(str(error)))
    faults = tuple(
        ConfigFault(source=source, reason=f"`{key}` is written twice; the last one counts")
        for key in map(shown, document.duplicates)
    )
    return ServerFile(servers=found, faults=faults)


def outline_servers(content: bytes) -> tuple[str, ...]:
    """Say in one printable line each which servers a file would start, and with which command.

    Nothing is expanded, so no variable's value shows. Our own entry and disabled ones are left out.

    Raises:
        ConfigError: The file as a whole cannot be used; the message does not name it.
    """
    lines = []
    for name, value in _entries(parse_jsonc(content)).items():
        try:
            entry = ServerEntry(name, value)
            command, args = entry.string("command") or entry.string("cli"), entry.words("args")
            if _is_disabled(entry) or is_toolfold(command, args):
                continue
            where = next(filter(None, map(entry.string, ("url", "openapi", "graphql"))), "")
            what = shlex.join([command, *args]) if command else where
            if named := _named_secrets(value):
                what += (
                    f" (gets the {'secret' if len(named) == 1 else 'secrets'} {', '.join(named)})"
                )
        except ConfigError as error:
            what = f"({error})"
        lines.append(shown(f"{name}: {what}"))
    return tuple(lines)


def is_named_still(server: ServerConfig) -> bool:
    """Whether the file that named a server still does; one that cannot be read leaves it be."""
    try:
        content = read_file(server.source)
        return content is not None and server.name in _entries(parse_jsonc(content))
    except (ConfigError, OSError):
        return True


def _entries(document: JsonDocument) -> JsonObject:
    root = document.value
    if not isinstance(root, dict):
        raise ConfigError("must hold a JSON object with `mcpServers`")
    tables = [name for name in TABLES if name in root]
    if root and not tables:
        raise ConfigError('has no `mcpServers`: write {"mcpServers": {"NAME": {…}}}')
    entries: JsonObject = {}
    for name in reversed(tables):
        table = root[name]
        if not isinstance(table, dict):
            raise ConfigError(f"`{name}` must be an object that names servers")
        entries.update(table)
    return entries


def _server(
    entry: ServerEntry, place: "_EntryLocation", context: ServerContext
) -> ServerConfig | None:
    options = context.options.get(entry.name, ServerOptions())
    if _is_disabled(entry) or not options.enabled:
        return None
    transport = _transport(entry) if entry.has("cli") else None
    program = "cli" if transport == "cli" else "command"
    command = place.fill_open(entry.string(program), program)
    args = place.fill_all(entry.words("args"))
    if is_toolfold(command, args):
        return None
    for key in _UNREAD:
        if entry.has(key):
            raise ConfigError(f"uses `{key}`, which toolfold does not read")
    transport = transport or _transport(entry)
    is_program = transport in {"stdio", "cli"}
    is_api = transport in {"openapi", "graphql"}
    server = ServerConfig(
        name=entry.name,
        source=place.source,
        transport=transport,
        command=place.command(command, program) if is_program else "",
        args=args if transport == "stdio" else (),
        commands=read_commands(entry.items("commands")) if transport == "cli" else (),
        env=place.fill_pairs(_environment(entry)) if is_program else (),
        cwd=place.directory(entry.string("cwd")) if is_program else None,
        url="" if is_program else _server_url(place.fill(entry.string("url")), is_api=is_api),
        headers=() if is_program else place.fill_pairs(entry.pairs("headers")),
        oauth=LoginOptions() if is_program else _login_options(entry, place),
        spec=place.spec(entry.string(transport), transport) if is_api else "",
        variables=place.fill_open_pairs(entry, "variables") if is_api else (),
        auth=_credentials(entry, place) if is_api else (),
        timeout_s=_timeout_s(entry, default=context.call_timeout_s),
        concurrency=options.concurrency,
        rate_per_s=options.rate_per_s,
        serialize_writes=options.serialize_writes,
        scope=options.scope,
        privacy=options.privacy,
        receives=options.receives,
        untrusted=options.untrusted,
    )
    return _with_references(server, place, context)


def _with_references(
    server: ServerConfig, place: "_EntryLocation", context: ServerContext
) -> ServerConfig:
    """Return a server with what is known of the secrets that it names.

    Raises:
        ConfigError: It may not name one of them, or an input is one that only VS Code has.
    """
    references = server.references
    for each in references:
        place.check(each)
    names = tuple(dict.fromkeys(each.name for each in references if each.is_stored))
    inputs = {each.name for each in references if each.kind == "input"}
    return replace(
        server,
        inputs=tuple(each for each in place.inputs if each.id in inputs),
        revisions=tuple((name, context.revisions.get(name, "")) for name in names),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntryLocation:
    """Where an entry stands, which completes what it leaves open."""

    source: Path
    environ: Mapping[str, str]
    cwd: Path | None
    is_project: bool
    inputs: tuple[SecretInput, ...]

    def fill(self, text: str) -> str:
        return expand(text, self.environ)

    def fill_open(self, text: str, key: str) -> str:
        """Fill what is shown and kept, in which no secret may be."""
        filled = self.fill(text)
        if references_in(filled):
            raise ConfigError(f"`{key}` cannot hold a secret: it is shown and kept on disk")
        return filled

    def fill_open_pairs(self, entry: ServerEntry, key: str) -> Pairs:
        return tuple((name, self.fill_open(text, key)) for name, text in entry.pairs(key))

    def check(self, reference: SecretReference) -> None:
        if self.is_project and not reference.is_stored:
            raise ConfigError(
                f"takes a secret from ${{{reference.kind}:…}}, which only your own file may do. "
                "Use ${keyring:NAME} here and `toolfold secrets set NAME`, or move the server to "
                "your own mcp.json"
            )
        if reference.is_stored:
            try:
                check_name(reference.name)
            except BadInput as error:
                raise ConfigError(str(error).rstrip(".")) from error

    def fill_all(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.fill(text) for text in texts)

    def fill_pairs(self, pairs: Pairs) -> Pairs:
        return tuple((name, self.fill(text)) for name, text in pairs)

    def command(self, filled: str, key: str) -> str:
        if not filled.strip():
            raise ConfigError(f"`{key}` is missing or empty")
        return str(home_of(self.source) / filled) if "/" in filled else filled

    def spec(self, text: str, key: str) -> str:
        filled = self.fill_open(text, key)
        if not filled.strip():
            raise ConfigError(f"`{key}` is missing or empty")
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", filled):
            return _url(filled, key)
        return str(home_of(self.source) / Path(filled).expanduser())

    def directory(self, text: str) -> Path | None:
        return home_of(self.source) / self.fill_open(text, "cwd") if text else self.cwd


def _named_secrets(written: Json) -> list[str]:
    """Return the secrets of the store that an entry names, as it is written."""
    found = re.findall(r"\$\{(?:keyring|input):([^}]*)\}", json.dumps(written, ensure_ascii=False))
    return sorted(set(found))


def _inputs(document: JsonDocument) -> tuple[SecretInput, ...]:
    """Read `inputs` as VS Code writes them; what is none is left out, and asked for without."""
    root = document.value
    written = root.get("inputs") if isinstance(root, dict) else None
    return tuple(
        SecretInput(
            id=str(each["id"]),
            description=str(each.get("description") or ""),
            default=None if each.get("default") is None else str(each["default"]),
            options=_options(each.get("options")),
            is_secret=bool(each.get("password")),
        )
        for each in (written if isinstance(written, list) else ())
        if isinstance(each, dict) and isinstance(each.get("id"), str)
    )


def _options(written: Json) -> tuple[str, ...]:
    return tuple(map(str, written)) if isinstance(written, list) else ()


def _url(filled: str, key: str = "url") -> str:
    if not re.match(r"https?://[^/\s]|\0", filled, re.IGNORECASE):
        raise ConfigError(f"`{key}` must begin with http:// or https://")
    return filled


def _server_url(filled: str, *, is_api: bool) -> str:
    return "" if is_api and not filled else _url(filled)


def _credentials(entry: ServerEntry, place: "_EntryLocation") -> Pairs:
    """Read `auth`: an object of values by scheme, or one text for a bearer token."""
    try:
        return place.fill_pairs(entry.pairs("auth"))
    except ConfigError:
        return (("bearer", place.fill(entry.string("auth"))),)


def _transport(entry: ServerEntry) -> TransportKind:
    written = entry.string("type") or entry.string("transport")
    if written:
        transport = _TRANSPORTS.get(written.lower().replace("_", "-"))
        if transport is None:
            kinds = dict.fromkeys(_TRANSPORTS.values())
            raise ConfigError(f"the transport {written!r} is not one of {', '.join(kinds)}")
        return transport
    for kind in ("openapi", "graphql", "cli"):
        if entry.has(kind):
            return _TRANSPORTS[kind]
    if entry.has("command") and entry.has("url"):
        raise ConfigError("has both `command` and `url`: add `type`, or take one out")
    if not entry.has("command") and not entry.has("url"):
        raise ConfigError(
            "needs `command`, `url` for a remote server, `openapi` or `graphql` for an API, or "
            "`cli` for a program"
        )
    return "stdio" if entry.has("command") else "http"


def _environment(entry: ServerEntry) -> Pairs:
    pairs = entry.pairs("env")
    for name, _ in pairs:
        if not name or "=" in name:
            raise ConfigError(f"`env` names a variable {name!r}, which cannot exist")
    return pairs


def _login_options(entry: ServerEntry, place: _EntryLocation) -> LoginOptions:
    try:
        oauth = entry.part("oauth")
        metadata_url = place.fill_open(
            oauth.string("authServerMetadataUrl"), "authServerMetadataUrl"
        )
        return LoginOptions(
            client_id=place.fill_open(oauth.string("clientId"), "clientId"),
            client_secret=place.fill(oauth.string("clientSecret")),
            callback_port=_port(oauth, "callbackPort"),
            metadata_url=_url(metadata_url, "authServerMetadataUrl") if metadata_url else "",
            scopes=_scopes(oauth),
        )
    except ConfigError as error:
        raise ConfigError(f"in `oauth`: {error}") from error


def _port(entry: ServerEntry, key: str) -> int | None:
    if not entry.has(key):
        return None
    port = entry.positive(key)
    if port != int(port) or port > 65535:
        raise ConfigError(f"`{key}` must be a port, from 1 to 65535")
    return int(port)


def _scopes(oauth: ServerEntry) -> tuple[str, ...]:
    """Read scopes as Claude Code writes them, in one string, or as a list."""
    try:
        return tuple(oauth.string("scopes").split())
    except ConfigError:
        return oauth.words("scopes")


def _timeout_s(entry: ServerEntry, *, default: float) -> float:
    if entry.has("timeout_s"):
        return entry.positive("timeout_s")
    if not entry.has("timeout"):
        return default
    milliseconds = entry.positive("timeout")
    if milliseconds < 1000:
        raise ConfigError(
            f'`timeout` is in milliseconds: write "timeout_s": {milliseconds:g} for seconds'
        )
    return milliseconds / 1000


def _is_disabled(entry: ServerEntry) -> bool:
    return entry.flag("disabled", default=False) or not entry.flag("enabled", default=True)
