"""`toolfold savings --estimate`: what the servers of the user's clients put before a model."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from toolfold.app import App
from toolfold.config.config import Config, current_directory, environment, load_config
from toolfold.config.serverfile import ServerContext, parse_servers
from toolfold.config.servers import ServerConfig, ServerFault
from toolfold.entrypoints.commands.local import with_app
from toolfold.entrypoints.commands.price import Price
from toolfold.entrypoints.commands.savings_text import bar
from toolfold.entrypoints.install.clients import (
    CLIENTS,
    ClientFile,
    InstallContext,
    find_client_file,
)
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.fold import Installer
from toolfold.entrypoints.install.records import FileRecords
from toolfold.errors import ConfigError, count
from toolfold.journal.ledger import read_definitions
from toolfold.journal.runs import compact
from toolfold.relay.surface import execute_code
from toolfold.tokens import count_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCost:
    """What one server puts before a model at the beginning of a conversation, in tokens."""

    server: str
    tools: int
    loaded: int
    names: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """All servers, the dearest first, and what stands in their place."""

    servers: tuple[ServerCost, ...]
    toolfold: int
    faults: Mapping[str, str]

    @property
    def loaded(self) -> int:
        """The tokens of all definitions."""
        return sum(each.loaded for each in self.servers)

    @property
    def names(self) -> int:
        """Those of the names alone."""
        return sum(each.names for each in self.servers)


def print_estimate(price: Price, *, as_json: bool) -> int:
    """Connect to the servers, or take what is known of them, and print what they cost.

    Nothing of any client is changed.
    """
    config = _config_after_install()
    if not config.servers and not as_json:
        print("Your clients name no server that could be asked.")
        return 0

    async def action(app: App) -> int:
        await app.catalog.learn()
        statuses = app.catalog.statuses()
        found = Estimate(
            servers=tuple(sorted(_costs(app), key=lambda each: -each.loaded)),
            toolfold=_own_tokens(app),
            faults={each.name: each.fault for each in statuses if each.fault},
        )
        print(json.dumps(as_json_value(found, price), indent=2) if as_json else text(found, price))
        return 0

    return with_app(config, action)


def _config_after_install() -> Config:
    """Return the configuration that there would be if all clients were installed to."""
    config, environ = load_config(), environment()
    install_context = InstallContext(
        directories=config.directories, environ=environ, cwd=current_directory()
    )
    files = Files(dry_run=True)
    places = [find_client_file(client, "user", install_context) for client in CLIENTS]
    for place in places:
        if place.is_in_use:
            _pretend(place, install_context, files)
    text = files.read(places[0].target)
    if text is None:
        return config
    server_context = ServerContext(environ=environ, options=config.settings.servers)
    read = parse_servers(places[0].target, text.encode(), server_context).servers
    servers = {server.name: server for server in config.servers}  # a project's, once trusted
    servers |= {each.name: each for each in read.values() if isinstance(each, ServerConfig)}
    broken = tuple(each for each in read.values() if isinstance(each, ServerFault))
    return replace(config, servers=tuple(servers.values()), faults=broken)


def _pretend(place: ClientFile, install_context: InstallContext, files: Files) -> None:
    """Do what install would do, in memory."""
    try:
        folder = Installer(
            install_context, files, FileRecords(install_context.directories.state, files)
        )
        folder.plan(place, keep=False).target.save(files)
    except ConfigError as error:
        print(f"toolfold: {place.title}: {error}", file=sys.stderr)


def _costs(app: App) -> Iterator[ServerCost]:
    for listing in app.catalog.definitions.listings:
        found = read_definitions(listing.text)
        if not found.is_built_in:
            tools = found.tools.values()
            yield ServerCost(
                server=found.server,
                tools=len(tools),
                loaded=sum(each.loaded for each in tools),
                names=sum(each.name for each in tools),
            )


def _own_tokens(app: App) -> int:
    ours = execute_code(sorted(app.catalog.servers), app.catalog.kinds)
    shown = {key: ours[key] for key in ("name", "description", "inputSchema")}
    return count_tokens(compact(shown))


def text(found: Estimate, price: Price) -> str:
    """Return an estimate for people to read."""
    return "\n".join(_lines(found, price))


def _lines(found: Estimate, price: Price) -> Iterator[str]:
    faults = [f"!  {name}: {fault}" for name, fault in found.faults.items()]
    if not found.servers:
        yield from ["No server answered.", *faults]
        return
    yield "Tokens of tool definitions at the start of a conversation (o200k):"
    yield ""
    yield f"{'server':<24} {'tools':>6} {'names only':>11} {'all loaded':>11}"
    for each in found.servers:
        line = f"{each.server:<24} {each.tools:>6,} {each.names:>11,} {each.loaded:>11,}"
        yield f"{line}  {bar(each.loaded, found.servers[0].loaded)}"
    tools = sum(each.tools for each in found.servers)
    yield f"{'total':<24} {tools:>6,} {found.names:>11,} {found.loaded:>11,}"
    yield f"{'toolfold instead':<24} {1:>6,} {found.toolfold:>11,} {found.toolfold:>11,}"
    yield ""
    yield "Clients that defer definitions, as Claude Code does, start with names only and read each"
    yield "definition when needed; others load all. Answers of tools are not included."
    yield from faults
    if (money := price.of(found.loaded - found.toolfold)) is not None:
        who = f" of {count(price.users, 'user')}" if price.users > 1 else ""
        yield f"At ${price.dollars:,.2f} for a million tokens, that is ${money:,.2f} for each"
        yield f"conversation{who} in which all would be loaded and read once."


def as_json_value(found: Estimate, price: Price) -> dict[str, object]:
    """Return an estimate for programs."""
    answer: dict[str, object] = {
        "servers": [asdict(each) for each in found.servers],
        "names": found.names,
        "loaded": found.loaded,
        "toolfold": found.toolfold,
        "faults": dict(found.faults),
    }
    if price.dollars is not None:
        money = price.of(found.loaded - found.toolfold)
        answer |= {"price": price.dollars, "users": price.users, "dollars": money}
    return answer
