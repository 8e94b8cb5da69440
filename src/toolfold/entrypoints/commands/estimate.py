"""`toolfold savings --estimate`: what the servers of the user's clients put before a model."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from toolfold.app import App
from toolfold.config.serverfile import Surroundings, parse_servers
from toolfold.config.servers import ServerConfig, ServerFault
from toolfold.config.settings import Config, current_directory, environment, load_config
from toolfold.entrypoints.commands.local import with_app
from toolfold.entrypoints.commands.price import Price
from toolfold.entrypoints.commands.savings_text import bar
from toolfold.entrypoints.install.clients import CLIENTS, Around, Place, find_place
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.fold import Folder
from toolfold.entrypoints.install.records import Records
from toolfold.errors import ConfigError
from toolfold.execution.ledger import read_definitions
from toolfold.execution.texts import compact
from toolfold.relay.surface import execute_code
from toolfold.tokens import count_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCost:
    """What one server puts before a model at the beginning of a conversation, in tokens."""

    server: str
    tools: int
    loaded: int
    names: int


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
        costs = sorted(_costs(app), key=lambda each: -each.loaded)
        ours = _own_tokens(app)
        if as_json:
            print(json.dumps(_as_json(app, costs, ours, price), indent=2))
        else:
            print("\n".join(_lines(app, costs, ours, price)))
        return 0

    return with_app(config, action)


def _config_after_install() -> Config:
    """Return the configuration that there would be if all clients were installed to."""
    config, environ = load_config(), environment()
    around = Around(directories=config.directories, environ=environ, cwd=current_directory())
    files = Files(dry_run=True)
    places = [find_place(client, "user", around) for client in CLIENTS]
    for place in places:
        if place.is_in_use:
            _pretend(place, around, files)
    text = files.read(places[0].target)
    if text is None:
        return config
    surroundings = Surroundings(environ=environ, options=config.settings.servers)
    read = parse_servers(places[0].target, text.encode(), surroundings).servers
    servers = {server.name: server for server in config.servers}  # a project's, once trusted
    servers |= {each.name: each for each in read.values() if isinstance(each, ServerConfig)}
    broken = tuple(each for each in read.values() if isinstance(each, ServerFault))
    return replace(config, servers=tuple(servers.values()), faults=broken)


def _pretend(place: Place, around: Around, files: Files) -> None:
    """Do what install would do, in memory."""
    try:
        folder = Folder(around, files, Records(around.directories.state, files))
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
    ours = execute_code(sorted(app.catalog.servers))
    shown = {key: ours[key] for key in ("name", "description", "inputSchema")}
    return count_tokens(compact(shown))


def _lines(app: App, costs: Sequence[ServerCost], ours: int, price: Price) -> Iterator[str]:
    faults = [f"{each.name}: {each.fault}" for each in app.catalog.statuses() if each.fault]
    if not costs:
        yield "None of your servers answered."
        yield from (f"!  {fault}" for fault in faults)
        return
    loaded, names = sum(e.loaded for e in costs), sum(e.names for e in costs)
    yield "What your servers put before a model when a conversation begins, in tokens (o200k):"
    yield ""
    yield f"{'server':<24} {'tools':>6} {'names only':>11} {'all loaded':>11}"
    for each in costs:
        line = f"{each.server:<24} {each.tools:>6,} {each.names:>11,} {each.loaded:>11,}"
        yield f"{line}  {bar(each.loaded, costs[0].loaded)}"
    yield f"{'together':<24} {sum(e.tools for e in costs):>6,} {names:>11,} {loaded:>11,}"
    yield f"{'toolfold in their place':<24} {1:>6,} {ours:>11,} {ours:>11,}"
    yield ""
    yield "Clients that defer definitions, as Claude Code does, begin with the names, and read each"
    yield "definition when it is needed; others load all. Answers of tools come on top of both."
    yield from (f"!  {fault}" for fault in faults)
    if (money := price.of(loaded - ours)) is not None:
        who = f" of {price.users:,} users" if price.users > 1 else ""
        yield f"At ${price.dollars:,.2f} for a million tokens, that is ${money:,.2f} for each"
        yield f"conversation{who} in which all would be loaded and read once."


def _as_json(app: App, costs: Sequence[ServerCost], ours: int, price: Price) -> dict[str, object]:
    loaded, names = sum(e.loaded for e in costs), sum(e.names for e in costs)
    answer: dict[str, object] = {
        "servers": [asdict(each) for each in costs],
        "names": names,
        "loaded": loaded,
        "toolfold": ours,
        "faults": {each.name: each.fault for each in app.catalog.statuses() if each.fault},
    }
    if price.dollars is not None:
        money = price.of(loaded - ours)
        answer |= {"price": price.dollars, "users": price.users, "dollars": money}
    return answer
