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
from toolfold.catalog.tool import Tool
from toolfold.config.config import Config
from toolfold.config.servers import ServerConfig, config_hash
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.parser import unknown
from toolfold.entrypoints.screen import Cell, Column, is_terminal, print_table
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
        print("(found by words alone)")
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


class CachedCatalog:
    """What is kept of the configured servers. Those never seen are connected to, once."""

    def __init__(self, arguments: Namespace) -> None:
        self._config: Config = config_of(arguments)
        self._cache = ListingCache(self._config.directories.cache)
        if any(not path.exists() for path in self._listings().values()):
            from toolfold.entrypoints.commands.local import learn_tools

            learn_tools(self._config)

    def known(self) -> "KnownTools":
        """Return the tools of every server, and what is built in."""
        from toolfold.catalog.known_tools import KnownTools
        from toolfold.mounts import built_in_tools

        listings = {s.name: self._cache.load(config_hash(s)) for s in self._servers()}
        return KnownTools(listings, built_in=built_in_tools())

    def named(self, name: str) -> list[Tool]:
        """Return the tool of that name, or all tools of the server.

        Raises:
            NotFound: Nothing has that name.
        """
        if "." not in name and name in self.server_names():
            return self.tools_of(name)
        return [self.known().find(name)]

    def tools_of(self, server: str) -> list[Tool]:
        """Return the tools of a server.

        Raises:
            NotFound: There is no such server.
        """
        names = self.server_names()
        if server not in names:
            raise NotFound(unknown("server", server, names, see="See `toolfold doctor`."))
        return [tool for tool in self.known().tools if server in {tool.server, tool.module}]

    def server_names(self) -> list[str]:
        """Return the servers that are configured or built in, by their own names and as modules."""
        tools = self.known().tools
        configured = [server.name for server in self._servers()]
        found = [*configured, *(each.server for each in tools), *(each.module for each in tools)]
        return list(dict.fromkeys(found))

    def silent(self) -> list[str]:
        """Return the servers whose tools are not known."""
        return [name for name, path in self._listings().items() if not path.exists()]

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
        faults += [
            f"{name}: its tools are not known. See `toolfold doctor`."
            for name, path in self._listings().items()
            if not path.exists()
        ]
        if not self._servers() and not faults:
            where = self._config.directories.config / "mcp.json"
            faults.append(f"No server is configured. Put yours into {where}.")
        return faults

    def _servers(self) -> list[ServerConfig]:
        return [server for server in self._config.servers if server.enabled]

    def _listings(self) -> dict[str, Path]:
        return {s.name: self._cache.sibling("tools", config_hash(s)) for s in self._servers()}


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

    listed = tool.listed
    return {
        "name": tool.path,
        "server": tool.server,
        "tool": listed.name,
        "stub": render_stub(tool),
        "description": listed.description,
        "input_schema": listed.input_schema,
        "output_schema": listed.output_schema,
        "read_only": listed.read_only,
        "destructive": listed.destructive,
        "idempotent": listed.idempotent,
    }
