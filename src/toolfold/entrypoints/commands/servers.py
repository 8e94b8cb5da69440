"""`toolfold add` and `toolfold remove`: edit the user's own file of servers, and try them."""

import argparse
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import anyio

from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.names import words
from toolfold.catalog.openapi.cache import ApiCache
from toolfold.catalog.openapi.load import load_api
from toolfold.catalog.openapi.model import Api
from toolfold.catalog.openapi.network import host_and_port, is_private
from toolfold.catalog.openapi.sources import SpecFiles, ask_schema, is_url
from toolfold.catalog.secrets import Secrets, ServerSecrets
from toolfold.catalog.stubs import brief
from toolfold.catalog.tool import Tool
from toolfold.config.config import (
    Config,
    current_directory,
    environment,
    load_config,
    secret_revisions,
)
from toolfold.config.jsonc import parse_jsonc
from toolfold.config.paths import locate
from toolfold.config.serverfile import TABLES, ServerContext, parse_servers
from toolfold.config.servers import ServerConfig, ServerFault
from toolfold.entrypoints.commands.registry import entry_of, find_server, short_name
from toolfold.entrypoints.commands.secrets import ask_for_missing
from toolfold.entrypoints.install.jsonedit import (
    append,
    drop,
    find_layout,
    member_text,
    members,
    swap,
)
from toolfold.entrypoints.parser import unknown
from toolfold.entrypoints.screen import print_json, tell
from toolfold.errors import ConfigError, NotFound, count
from toolfold.jsontypes import JsonObject
from toolfold.storage.files import make_private, read_file, replace_file
from toolfold.storage.secrets import SecretStore

_EMPTY = '{\n  "mcpServers": {}\n}\n'
_SHOWN = 8


def add(arguments: argparse.Namespace) -> int:
    """Add a server to the user's file and say what it offers; with `--dry-run` only say it."""
    config = load_config()
    described = _described(arguments)
    entry = _entry(arguments) if described is None else entry_of(described, _pairs(arguments.env))
    name: str = arguments.name or (short_name(described) if described else arguments.words[0])
    api: Api | None = None
    if spec := entry.get("openapi") or entry.get("graphql"):
        api = _load(_parsed(config, arguments.name or "api", entry), config)
        name = arguments.name or _name_of(api, str(spec))
    server = _parsed(config, name, entry)
    if api is not None:
        _check_reachable(name, server, api)
    _check_program(server)
    path = locate(config.directories.config / "mcp.json")
    text = _with_entry(_text(path), name, entry)
    if not arguments.dry_run:
        _write(path, text)
    added = {"name": name, "file": str(path), "added": not arguments.dry_run}
    if not (arguments.dry_run or arguments.json):
        print(f"Added {name} to {path}. The next run can use it; no restart is needed.")
    if api is not None:
        names = [tool.function for tool in _tools_of(name, api)]
        if arguments.json:
            print_json({**added, "tools": names, "fault": None})
            return 0
        return _say_api(name, server, api)
    if arguments.json:
        fault, offered = anyio.run(_offered, replace(config, servers=(server,), faults=()))
        print_json({**added, "tools": offered, "fault": fault})
        return int(offered is None)
    return _try_new(arguments, config, server, entry)


def _try_new(
    arguments: argparse.Namespace, config: Config, server: ServerConfig, entry: JsonObject
) -> int:
    """Ask for the secrets of a new server, try it, and say how to undo it where it fails."""
    if ask_for_missing(replace(config, servers=(server,))):
        server = _parsed(load_config(), server.name, entry)
    status = _try(config, server)
    if status and not arguments.dry_run:
        print(f"`toolfold remove {shlex.quote(server.name)}` removes it.")
    return status


def remove(arguments: argparse.Namespace) -> int:
    """Remove a server from the user's file; comments and other entries stay as they are."""
    config = load_config()
    path = locate(config.directories.config / "mcp.json")
    text = _text(path)
    table = _table_with(text, arguments.name)
    if table is None:
        known = [each.name for table in _tables(text) for each in members(_object(text, table))]
        see = "`toolfold doctor` lists servers."
        raise NotFound(f"{path}: {unknown('server', arguments.name, known, see=see)}")
    _write(path, _edited(text, table, drop(_object(text, table), arguments.name)))
    sentence = f"Removed {arguments.name} from {path}."
    tell(arguments, sentence, name=arguments.name, file=str(path))
    return 0


def _described(arguments: argparse.Namespace) -> JsonObject | None:
    """Return what a `server.json` or a registry's file says of a server, where one is named."""
    here, given = current_directory(), arguments.words
    if arguments.registry:
        return find_server(here / arguments.registry, given[0])
    is_file = len(given) == 1 and given[0].endswith(".json")
    return find_server(here / given[0]) if is_file else None


def _entry(arguments: argparse.Namespace) -> JsonObject:
    """Return what stands in the file for the words of a command line."""
    given: list[str] = arguments.words
    if len(given) < 2:
        raise ConfigError(
            "Say what to add: `toolfold add NAME URL`, `toolfold add NAME -- COMMAND ARGS`, "
            "`toolfold add openapi FILE-OR-URL`, `toolfold add graphql FILE-OR-URL` or "
            "`toolfold add server.json`."
        )
    if given[0] in {"openapi", "graphql"} and len(given) == 2:
        spec = given[1] if is_url(given[1]) else str(current_directory() / given[1])
        entry: JsonObject = {given[0]: spec}
        entry |= {"url": arguments.url} if arguments.url else {}
        entry |= {"auth": _pairs(arguments.auth)} if arguments.auth else {}
        return entry | ({"headers": _pairs(arguments.header)} if arguments.header else {})
    if is_url(given[1]) and len(given) == 2:
        headers = {"headers": _pairs(arguments.header)} if arguments.header else {}
        return {"type": "http", "url": given[1], **headers}
    env = {"env": _pairs(arguments.env)} if arguments.env else {}
    return {"command": given[1], "args": list(given[2:]), **env}


def _pairs(texts: Iterable[str]) -> JsonObject:
    pairs: JsonObject = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ConfigError(f"Write KEY=VALUE, such as bearer=${{TOKEN}}; got {text!r}.")
        pairs[key] = value
    return pairs


def _parsed(config: Config, name: str, entry: JsonObject) -> ServerConfig:
    """Return the server of an entry as it will be read.

    Raises:
        ConfigError: It cannot be used.
    """
    source = locate(config.directories.config / "mcp.json")
    content = _with_entry(_EMPTY, name, entry).encode()
    around = ServerContext(
        environ=environment(),
        call_timeout_s=config.settings.call_timeout_s,
        revisions=secret_revisions(config.directories),
    )
    server = parse_servers(source, content, around).servers.get(name)
    if isinstance(server, ServerFault):
        raise ConfigError(f"{name}: {server.reason}.")
    if server is None:
        raise ConfigError(f"{name} would start toolfold itself, which is not needed.")
    return server


def _load(server: ServerConfig, config: Config) -> Api:
    cache = ApiCache(config.directories.cache, server)
    secrets = Secrets(SecretStore(config.directories.data), environment())
    own = ServerSecrets(secrets, server, config.search_path, config.home)

    async def ask(question: bytes) -> SpecFiles:
        return await ask_schema(await own.filled(), question)

    try:
        return anyio.run(partial(load_api, server, cache, fresh=True, ask=ask))
    except ConfigError as error:
        raise ConfigError(f"{server.spec} {error}.") from error


def _check_reachable(name: str, server: ServerConfig, api: Api) -> None:
    """See that an API is where requests may go.

    Raises:
        ConfigError: It is at a private address, which only the user can name.
    """
    its_own = (urljoin(server.spec, each) if is_url(server.spec) else each for each in api.servers)
    url = server.url or next(filter(is_url, its_own), "")
    named = {host_and_port(each) for each in (server.url, server.spec) if is_url(each)}
    if is_private(urlsplit(url).hostname or "") and host_and_port(url) not in named:
        raise ConfigError(
            f"{name} is at {urlsplit(url).hostname}, a private address: calls to it would be "
            f"refused. To allow it, add it with --url {url.rstrip('/')}."
        )


def _check_program(server: ServerConfig) -> None:
    """See that there is a program to start; whether it is a server is tried later.

    Raises:
        ConfigError: There is none.
    """
    if server.transport != "stdio" or "PATH" in dict(server.env):
        return
    place = str(server.cwd or current_directory())
    command = str(Path(place) / server.command) if "/" in server.command else server.command
    if shutil.which(command, path=environment().get("PATH")) is None:
        raise ConfigError(
            f"There is no program {server.command!r} here, so nothing was added. A server at a URL "
            f"is added by `toolfold add {server.name} https://…`."
        )


def _name_of(api: Api, spec: str) -> str:
    """Return a short name for an API: of its title, else of where it is."""
    common = {"api", "rest", "the", "service", "v1", "v2", "v3", "openapi", "swagger"}
    found = [each for each in words(api.title) if each not in common]
    return "_".join(found[:3]) or "_".join(words(Path(spec).stem)[:3]) or "api"


def _tools_of(name: str, api: Api) -> list[Tool]:
    """Return the operations of an API under the names that code has for them."""
    return list(KnownTools({name: api.tools}).tools)


def _say_api(name: str, server: ServerConfig, api: Api) -> int:
    tools = _tools_of(name, api)
    methods = Counter("reads" if tool.listed.read_only else "writes" for tool in tools)
    deletes = sum(bool(tool.listed.destructive) for tool in tools)
    print(f"{api.title or name} ({api.protocol}): {count(len(api.operations), 'operation')}")
    print(f"  {methods['reads']:,} only read, {methods['writes']:,} change something", end="")
    print(f", {deletes:,} of them delete")
    print(f"  server: {server.url or ', '.join(api.servers[:3]) or 'not said: give --url'}")
    if api.schemes:
        kinds = ", ".join(f"{scheme} ({kind.kind})" for scheme, kind in api.schemes)
        print(f"  credentials: {kinds}")
    for tool in tools[:_SHOWN]:
        print(f"  {brief(tool)}")
    if len(tools) > _SHOWN:
        print(f"  … and {len(tools) - _SHOWN:,} more: toolfold tools search WORDS --server {name}")
    for fault in api.faults[:_SHOWN]:
        print(f"  note: {fault}")
    return 0


def _try(config: Config, server: ServerConfig) -> int:
    """Start a server, say what it offers, and end it."""
    fault, names = anyio.run(_offered, replace(config, servers=(server,), faults=()))
    if names is None:
        print(f"{server.name} did not start: {fault or 'it listed nothing'}")
        return 1
    shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
    print(f"{server.name} offers {count(len(names), 'tool')}: {shown}")
    return 0


async def _offered(config: Config) -> tuple[str | None, list[str] | None]:
    """Return why a server cannot be used, and the names of its tools if it can."""
    from toolfold.app import running_app  # an API needs none of it

    async with running_app(config) as app:
        await app.catalog.learn(fresh=True)
        status = app.catalog.statuses()[0]
        if status.tools is None or status.fault:
            return status.fault, None
        return None, sorted(app.catalog.functions(status.module or ""))


def _text(path: Path) -> str:
    """Return the text of the servers' file.

    Raises:
        ConfigError: It is broken, so nothing can be added or removed.
    """
    content = read_file(path)
    if content is None or not content.strip():
        return _EMPTY
    try:
        value = parse_jsonc(content).value
    except ConfigError as error:
        raise ConfigError(f"{path} {error}. It was left untouched.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path} holds no JSON object. It was left untouched.")
    return content.decode()


def _write(path: Path, text: str) -> None:
    make_private(path.parent)
    replace_file(path, text.encode())


def _with_entry(text: str, name: str, entry: JsonObject) -> str:
    """Return the text of a file with one more server.

    Raises:
        ConfigError: There is one of that name.
    """
    if not re.search(r"[A-Za-z0-9]", name):
        raise ConfigError(f"{name!r} is no name for a server: it has neither letters nor digits.")
    if _table_with(text, name) is not None:
        raise ConfigError(f"There is a server {name!r} already. `toolfold remove {name}` first.")
    present = {member.name for member in members(text)}
    table = next((each for each in TABLES if each in present), None)
    if table is None:
        table = TABLES[0]
        text = append(text, member_text(table, "{}"), find_layout(text, 0))
    layout = find_layout(text, 1)
    addition = member_text(name, layout.render(entry))
    return _edited(text, table, append(_object(text, table), addition, layout))


def _tables(text: str) -> list[str]:
    present = {member.name for member in members(text)}
    return [table for table in TABLES if table in present]


def _table_with(text: str, name: str) -> str | None:
    for table in _tables(text):
        if name in {each.name for each in members(_object(text, table))}:
            return table
    return None


def _object(text: str, table: str) -> str:
    member = next(each for each in members(text) if each.name == table)
    return text[member.value : member.end]


def _edited(text: str, table: str, changed: str) -> str:
    return swap(text, table, member_text(table, changed))
