"""What a server's own arguments and environment say that calls of its tools need. Pure.

Paths, repositories, databases and addresses; never secrets. Only what surely is one of them counts:
a path that is written as one, an address without user and query, and nothing under a name that
speaks of keys or passwords.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from toolfold.catalog.names import words
from toolfold.config.servers import ServerConfig
from toolfold.jsontypes import Json

Kind = Literal["repository", "database", "path", "url"]

_SECRET: Final = re.compile(
    r"(?:^|[^a-z])(?:key|pass|passwd|pwd|auth|authorization|cred\w*|cookie|session|bearer"
    r"|\w*(?:token|secret|password|apikey))"
    r"(?:$|[^a-z])",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"(?:~|\.{1,2})?(?:/[\w .@+~-]+)+/?|[A-Za-z]:\\[\w .@+~\\-]+")
_SCRIPT: Final = re.compile(r"\.(?:py|js|mjs|cjs|ts|sh|jar|exe|whl)$|/(?:bin|node_modules)/")
_DATABASE: Final = re.compile(r"\.(?:db|sqlite3?|duckdb)$")
_NAMED: Final = re.compile(
    r"path|dir|file|root|repo|db|database|url|uri|host|folder|vault|workspace", re.IGNORECASE
)
_URL: Final = re.compile(r"[a-z][a-z0-9+]{1,15}://[^\s/@]+(?:/[\w./~-]*)?", re.IGNORECASE)
_FITTING: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("repo_path", "repository_path", "repo_dir", "repository"), "repository"),
    **dict.fromkeys(("db_path", "database_path", "db_file", "database"), "database"),
    **dict.fromkeys(("root_path", "root_dir", "vault_path", "base_dir", "base_path"), "path"),
}
_STARTING: Final = frozenset({"-y", "--yes", "-q", "--quiet", "-m", "--from", "run"})
_PROGRAM: Final = re.compile(
    r"(?:@[\w.-]{1,40}/)?((?=[\w.-]*(?:mcp|server))[A-Za-z][\w.-]{2,60})(?:@[\w.^~-]{1,20})?"
)
_MAX_CHARS: Final = 200
_MAX_VALUES: Final = 8


class KnownValue(NamedTuple):
    """One thing that a server was started with."""

    kind: Kind
    value: str


def known_values(args: Iterable[str], env: Iterable[tuple[str, str]]) -> tuple[KnownValue, ...]:
    """Return what the arguments and the environment of a server say that is no secret."""
    found = [*_in_arguments(args), *_in_environment(env)]
    return tuple(dict.fromkeys(found))[:_MAX_VALUES]


def values_of(config: ServerConfig) -> tuple[KnownValue, ...]:
    """Return what the entry of a server says that calls of its tools may need."""
    found = known_values(config.args, config.env)
    return found if config.transport == "stdio" else ()


def is_secret_name(name: str) -> bool:
    """Whether a variable, a header or a flag of that name is given a secret."""
    return bool(_SECRET.search(name.replace("_", "-")))


def program_of(config: ServerConfig) -> str:
    """Return which program a server is, where its entry plainly names one: `mcp-server-sqlite`."""
    first = next((each for each in config.args if each not in _STARTING), "")
    steps = re.split(r"[/\\]", first)
    package = _package(steps) if len(steps) > 2 else first
    for named in (re.split(r"[/\\]", config.command)[-1], package):
        if found := _PROGRAM.fullmatch(named):
            return found[1]
    return ""


_KINDS: Final = {"server-memory": "knowledge graph"}
"""Of programs whose names say something else: our own module `memory` keeps notes."""


def program_kind(config: ServerConfig) -> str:
    """Return what kind of server its program is, unless its name says that: `sqlite`."""
    if kind := _KINDS.get(program_of(config)):
        return kind
    said = [word for word in words(program_of(config)) if word not in {"mcp", "server"}]
    return " ".join(said) if set(said) - set(words(config.name)) else ""


def _package(steps: list[str]) -> str:
    """Return the package that the path of a script goes through, if it plainly is one."""
    places = [at for at, step in enumerate(steps) if step == "node_modules"]
    following = steps[places[-1] + 1 :] if places else []
    return next((step for step in following if not step.startswith("@")), "")


def starts_paths(config: ServerConfig) -> bool:
    """Whether a server takes relative paths to start at the directory that it was started with."""
    values = [each.kind for each in values_of(config)]
    return values == ["path"] and program_of(config) == "server-filesystem"


def defaults_for(
    properties: Json, required: Iterable[str], values: Iterable[KnownValue]
) -> dict[str, str]:
    """Return the required parameters that just one known value plainly fits, with that value."""
    schemas = properties if isinstance(properties, dict) else {}
    found: dict[str, str] = {}
    for name in required:
        schema, kind = schemas.get(name), _FITTING.get(name.lower())
        fitting = [each.value for each in values if each.kind == kind]
        is_text = isinstance(schema, dict) and schema.get("type") == "string"
        if is_text and len(fitting) == 1:
            found[name] = fitting[0]
    return found


def _in_arguments(args: Iterable[str]) -> Iterator[KnownValue]:
    flag = ""
    for word in args:
        name, is_pair, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if word.startswith("-") and not is_pair:
            flag = word
            continue
        if known := _known(name or flag, value):
            yield known
        flag = ""


def _in_environment(env: Iterable[tuple[str, str]]) -> Iterator[KnownValue]:
    for name, value in env:
        if name != "PATH" and _NAMED.search(name) and (known := _known(name, value)):
            yield known


def _known(name: str, value: str) -> KnownValue | None:
    """Return what a value is, given under a name or a flag."""
    if is_secret_name(name) or len(value) > _MAX_CHARS:
        return None
    is_database = bool(_DATABASE.search(value)) or bool(re.search(r"\bdb\b|database", name))
    if "://" in value:
        address = _address(value)
        kind: Kind = "database" if is_database else "url"
        return KnownValue(kind, address) if address else None
    if not _PATH.fullmatch(value) or _SCRIPT.search(value):
        return None
    if is_database:
        return KnownValue("database", value)
    is_repository = "repo" in name.lower() or name == "-r"
    return KnownValue("repository" if is_repository else "path", value)


def _address(value: str) -> str | None:
    """Return an address without user, query and fragment; None if it is not surely one."""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if not host or any(len(step) > 40 for step in parts.path.split("/")):
        return None
    shown = f"{parts.scheme}://{host}{port}{parts.path}"
    return shown if _URL.fullmatch(shown) else None
