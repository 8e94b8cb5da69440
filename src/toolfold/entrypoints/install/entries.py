"""Servers as clients write them: what they are in toolfold's file, and why some cannot go there."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolfold.config.entry import ServerEntry, is_toolfold
from toolfold.config.serverfile import ServerContext, parse_servers
from toolfold.config.servers import ServerFault
from toolfold.entrypoints.install.clients import ClientFile, ClientName
from toolfold.entrypoints.install.servertext import ServerText, Table
from toolfold.errors import ConfigError, shown
from toolfold.jsontypes import Json, JsonObject

# They forbid tools or ask before them. toolfold would open what the user has closed.
_RESTRICTIONS = ("enabled_tools", "disabled_tools", "default_tools_approval_mode")
_TOOL_RULES = ("tools", "toolPermissions")
# Which the client fills in. Their names could be those of environment variables, too.
_FILLED_BY_CLIENT = re.compile(
    r"\$\{(?:(?:input|command|config):[^}]*"
    r"|workspaceFolder(?:Basename)?|userHome|pathSeparator|/|cwd|file\w*|CLAUDE_PLUGIN_\w+)\}"
)
_CREDENTIAL = re.compile(r"auth|token|api-?key|secret|cookie", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server in a client's file."""

    table: Table
    name: str
    written: Json
    entry: JsonObject
    """What toolfold's file will say; empty where it cannot go there."""

    reason: str = ""
    """Why it must stay in the client; empty where it can go."""

    is_own: bool = False
    """Whether it is toolfold itself."""

    @property
    def is_movable(self) -> bool:
        """Whether toolfold can take it over."""
        return not self.is_own and not self.reason

    @property
    def is_local(self) -> bool:
        """Whether it was meant for one project only, in a file for all."""
        return len(self.table) > 1


def find_servers(place: ClientFile, text: ServerText) -> list[FoundServer]:
    """Return every server of a file, in the order written.

    Raises:
        ConfigError: The file does not hold servers in the way it should.
    """
    return [
        _found(place, table, name, written)
        for table in place.tables
        for name, written in text.servers(table).items()
    ]


def lacks_credentials(entry: JsonObject) -> bool:
    """Whether a server is reached over HTTP with nothing that says who is asking."""
    headers = entry.get("headers")
    names = headers if isinstance(headers, dict) else {}
    return "command" not in entry and not any(_CREDENTIAL.search(name) for name in names)


def is_same(one: Json, other: Json) -> bool:
    """Whether two entries start the same server, however they say it."""
    return _essence(one) == _essence(other)


def _found(place: ClientFile, table: Table, name: str, written: Json) -> FoundServer:
    try:
        if is_own_entry(name, written):
            return FoundServer(table=table, name=name, written=written, entry={}, is_own=True)
        home = Path(table[1]) if len(table) > 1 else place.home
        entry = _converted(place.client, name, written)
        _require_usable(name, entry)
        entry = _placed(entry, home, is_moved=home != place.home)
        return FoundServer(table=table, name=name, written=written, entry=entry)
    except ConfigError as error:
        reason = shown(str(error))
        return FoundServer(table=table, name=name, written=written, entry={}, reason=reason)


def is_own_entry(name: str, written: Json) -> bool:
    """Whether an entry starts toolfold itself."""
    try:
        entry = ServerEntry(name, written)
        return is_toolfold(entry.string("command"), entry.words("args"))
    except ConfigError:
        return False


def _converted(client: ClientName, name: str, written: Json) -> JsonObject:
    if not isinstance(written, dict):
        raise ConfigError("is not an object")
    for key in (*_RESTRICTIONS, *_TOOL_RULES):
        if written.get(key):
            raise ConfigError(f"limits its tools by `{key}`, which toolfold would not keep to")
    entry = _from_codex(name, written) if client == "codex" else dict(written)
    if filled := _FILLED_BY_CLIENT.search(_dumped(entry)):
        raise ConfigError(f"uses {filled[0]}, which only {client} can fill in")
    return entry


def _require_usable(name: str, entry: JsonObject) -> None:
    """Read the entry as toolfold will, whatever its variables may hold."""
    content = _dumped({"mcpServers": {name: entry}}).encode("utf-8", "surrogatepass")
    read = parse_servers(Path("mcp.json"), content, ServerContext(environ=_AnyVariable()))
    found = read.servers[name]
    if isinstance(found, ServerFault):
        raise ConfigError(found.reason)


def _placed(entry: JsonObject, home: Path | None, *, is_moved: bool) -> JsonObject:
    """Say where relative paths start, if the entry will lie where they would start elsewhere."""
    command = entry.get("command")
    if not isinstance(command, str):
        return entry
    is_relative = "/" in command and not command.startswith(("/", "~", "$"))
    if home is None:
        if is_relative:
            raise ConfigError("starts a program by a path relative to wherever the client runs")
        return entry
    if not is_moved:
        return entry
    moved = {"command": str(home / command)} if is_relative else {}
    return {**entry, **moved, "cwd": entry.get("cwd") or str(home)}


def _from_codex(name: str, written: JsonObject) -> JsonObject:
    entry = {key: value for key, value in written.items() if key not in _CODEX_KEYS}
    known = ServerEntry(name, {key: value for key, value in written.items() if key in _CODEX_KEYS})
    environment = {variable: f"${{{variable}:-}}" for variable in known.words("env_vars")}
    headers = dict(known.pairs("http_headers"))
    headers |= {header: f"${{{variable}}}" for header, variable in known.pairs("env_http_headers")}
    if variable := known.string("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    if environment:
        entry["env"] = {**environment, **dict(ServerEntry(name, written).pairs("env"))}
    if headers:
        entry["headers"] = {**headers}
    if known.has("tool_timeout_sec"):
        entry["timeout_s"] = known.positive("tool_timeout_sec")
    return {"type": "http", **entry} if "url" in entry else entry


_CODEX_KEYS = {
    *("bearer_token_env_var", "env_http_headers", "env_vars", "http_headers"),
    *("required", "startup_timeout_ms", "startup_timeout_sec", "supports_parallel_tool_calls"),
    "tool_timeout_sec",
}


def _dumped(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise ConfigError("holds a date, which has no place in JSON") from error


def _essence(entry: Json) -> Json:
    if not isinstance(entry, dict):
        return entry
    said: JsonObject = {key: value for key, value in entry.items() if value not in (None, [], {})}
    if said.get("type") == ("stdio" if "command" in said else "http"):
        del said["type"]
    return said


def variables_in(servers: JsonObject) -> list[str]:
    """Return the environment variables that servers of toolfold's file name, sorted."""
    environ = _AnyVariable()
    content = _dumped({"mcpServers": servers}).encode("utf-8", "surrogatepass")
    parse_servers(Path("mcp.json"), content, ServerContext(environ=environ))
    return sorted(environ.asked)


class _AnyVariable(Mapping[str, str]):
    """An environment in which every variable is set, and fits wherever it is put."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return "http://variable"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
