"""`toolfold tools`: list, find and describe tools from what is kept on disk.

Nothing is connected to unless a server's tools are not known yet, and nothing heavy is imported.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from toolfold.catalog.listing import ListingCache
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.config.config import Config
from toolfold.config.servers import ServerConfig, config_hash
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.parser import unknown
from toolfold.entrypoints.screen import Cell, Column, exact_moment, is_terminal, print_table
from toolfold.entrypoints.terminal import remote_terminal
from toolfold.errors import NotFound

if TYPE_CHECKING:
    from toolfold.app import App
    from toolfold.catalog.known_tools import KnownTools
    from toolfold.catalog.search.discovery import SearchResult


_COLUMNS = (Column("TOOL"), Column("DOES", is_wide=True))


def tools_list(arguments: Namespace) -> int:
    """Print every tool, and name the servers whose tools are not known.

    Raises:
        NotFound: No server has the name that was given.
    """
    shelf = CachedCatalog(arguments)
    wanted = arguments.server or arguments.name
    tools = shelf.tools_of(wanted) if wanted else list(shelf.known().tools)
    tools.sort(key=lambda tool: tool.is_built_in)  # those of the user's servers first
    if arguments.json:
        _print_json(tools)
    elif is_terminal():
        from toolfold.catalog.stubs import sentence

        print_table(_COLUMNS, [(Cell(tool.path, "name"), sentence(tool)) for tool in tools])
    else:
        from toolfold.catalog.stubs import brief

        for tool in tools:
            print(brief(tool))
    return shelf.report_missing()


def tools_search(arguments: Namespace) -> int:
    """Print the tools that fit a query, best first."""
    query = " ".join(arguments.query)
    limit, server = max(1, arguments.limit), arguments.server
    shelf = CachedCatalog(arguments)
    found = shelf.search(query, limit=limit, server=server)
    if arguments.json:
        _print_json(found.hits)
        return shelf.report_missing()
    from toolfold.catalog.stubs import brief

    for tool in found.hits:
        print(brief(tool))
    if not found.hits:
        print(f"No tool matches {query!r}.")
    if found.unmatched:
        print(f"(no tool mentions: {', '.join(found.unmatched)})")
    if found.is_by_words_only:
        print("(searched by keyword only)")
    return shelf.report_missing()


def tools_describe(arguments: Namespace) -> int:
    """Print how to call the tools named."""
    from toolfold.catalog.stubs import render_stub

    shelf = CachedCatalog(arguments)
    tools = [tool for name in arguments.names for tool in shelf.named(name)]
    if arguments.json:
        print(json.dumps([_as_json(tool) for tool in tools], ensure_ascii=False, indent=2))
    else:
        print("\n\n".join(f"# {tool.path}\n{render_stub(tool)}".rstrip() for tool in tools))
    return 0


def tools_changes(arguments: Namespace) -> int:
    """Print how tools changed that were used, the newest change first."""
    from toolfold.execution.trust.approvals import approvals_of
    from toolfold.execution.trust.pinned_definitions import definition_of

    config, known = config_of(arguments), CachedCatalog(arguments).known()
    pinned, scope = approvals_of(config).definitions, config.namespace
    current = {each.path: definition_of(each) for each in known.tools}
    changes = [*pinned.compare_all(scope, current), *pinned.changes(scope)]
    if arguments.json:
        entries = [{"tool": each.tool, "at": each.at, "changes": each.lines()} for each in changes]
        print(json.dumps(entries, ensure_ascii=False, indent=2))
        return 0
    for each in changes:
        when = "not used since" if each.at is None else f"used so since {exact_moment(each.at)}"
        print(f"{each.tool} ({when})", *each.lines(), sep="\n  ")
    if not changes:
        print("No definition of a tool that was used has changed.")
    return 0


class CachedCatalog:
    """What is kept of the configured servers. Those never seen are connected to, once."""

    def __init__(self, arguments: Namespace) -> None:
        self._config: Config = config_of(arguments)
        self._listed = self._listings()
        if self.silent():
            from toolfold.entrypoints.commands.local import learn_tools

            learn_tools(self._config)
            self._listed = self._listings()

    def known(self) -> "KnownTools":
        """Return the tools of every server, and what is built in."""
        from toolfold.catalog.known_tools import KnownTools
        from toolfold.catalog.known_values import values_of
        from toolfold.mounts import built_in_tools

        values = {server.name: values_of(server) for server in self._servers()}
        return KnownTools(self._listed, built_in=built_in_tools(), values=values)

    def named(self, name: str) -> list[Tool]:
        """Return the tool of that name, or all tools of the server.

        Raises:
            NotFound: Nothing has that name.
        """
        if "." not in name and name in self.server_names():
            if name in self.silent():
                raise NotFound(_unlisted(name))
            return self.tools_of(name)
        return [self.known().find(name)]

    def tools_of(self, server: str) -> list[Tool]:
        """Return the tools of a server.

        Raises:
            NotFound: There is no such server.
        """
        names = self.server_names()
        if server not in names:
            modules = [each for each in names if ":" not in each]
            raise NotFound(unknown("server", server, modules, see="See `toolfold doctor`."))
        return [tool for tool in self.known().tools if server in {tool.server, tool.module}]

    def server_names(self) -> list[str]:
        """Return the servers that are configured or built in, by their own names and as modules."""
        tools = self.known().tools
        configured = [server.name for server in self._servers()]
        found = [*configured, *(each.server for each in tools), *(each.module for each in tools)]
        return list(dict.fromkeys(found))

    def silent(self) -> list[str]:
        """Return the servers whose tools are not known."""
        return [name for name, tools in self._listed.items() if tools is None]

    def search(self, query: str, *, limit: int, server: str | None) -> "SearchResult":
        """Return the tools that fit a query: by words and meaning in the daemon, else by words."""
        if remote_terminal() is None:
            return self.known().index.search(query, limit=limit, server=server)
        found: list[SearchResult] = []

        async def action(app: "App") -> int:
            found.append(await app.discovery.find(query, limit=limit, server=server, client=""))
            return 0

        from toolfold.entrypoints.commands.local import with_app

        with_app(self._config, action)
        return found[0]

    def report_missing(self) -> int:
        """Say on standard error what is not there; return the exit status."""
        faults = self._faults()
        for fault in faults:
            print(f"toolfold: {fault}", file=sys.stderr)
        return 1 if faults else 0

    def _faults(self) -> list[str]:
        faults = [str(fault) for fault in self._config.faults]
        faults += map(_unlisted, self.silent())
        if not self._servers() and not faults:
            where = self._config.directories.config / "mcp.json"
            faults.append(f"No server is configured. Put yours into {where}.")
        return faults

    def _servers(self) -> list[ServerConfig]:
        return [server for server in self._config.servers if server.enabled]

    def _listings(self) -> dict[str, tuple[ListedTool, ...] | None]:
        cache = self._config.directories.cache
        return {server.name: last_listing(server, cache) for server in self._servers()}


def last_listing(server: ServerConfig, cache: Path) -> tuple[ListedTool, ...] | None:
    """Return what a server, or the specification of an API, said last; None if nothing is kept."""
    if server.transport == "cli":
        from toolfold.catalog.program import command_tools

        return command_tools(server)
    if not server.is_api:
        return ListingCache(cache).load(config_hash(server))
    from toolfold.catalog.openapi.cache import kept_tools

    return kept_tools(server, cache)


def _unlisted(server: str) -> str:
    return f"{server}: its tools are not known. See `toolfold doctor`."


def _print_json(tools: Iterable[Tool]) -> None:
    from toolfold.catalog.stubs import signature

    entries = [
        {
            "name": tool.path,
            "server": tool.server,
            "signature": signature(tool),
            "description": tool.listed.description,
        }
        for tool in tools
    ]
    print(json.dumps(entries, ensure_ascii=False, indent=2))


def _as_json(tool: Tool) -> dict[str, object]:
    from toolfold.catalog.stubs import render_stub
    from toolfold.catalog.tool import self_contained

    listed = tool.listed
    output = listed.output_schema
    return {
        "name": tool.path,
        "server": tool.server,
        "tool": listed.name,
        "stub": render_stub(tool),
        "description": listed.description,
        "input_schema": self_contained(listed.input_schema),
        "output_schema": None if output is None else self_contained(output),
        "read_only": listed.read_only,
        "destructive": listed.destructive,
        "idempotent": listed.idempotent,
    }
