"""Names of what is there, for completion: read from files, without starting anything."""

from collections.abc import Iterator

from toolfold.config.config import load_config

Names = Iterator[tuple[str, str]]


def clients() -> Names:
    """Yield the clients that install knows."""
    from toolfold.entrypoints.install.clients import CLIENTS

    for name in (*CLIENTS, "all"):
        yield name, "client"


def servers() -> Names:
    """Yield the servers that are configured."""
    for server in load_config().servers:
        yield server.name, "server"


def tools() -> Names:
    """Yield the tools that are known."""
    from toolfold.catalog.known_tools import KnownTools
    from toolfold.catalog.stubs import sentence
    from toolfold.entrypoints.commands.tools import last_listing
    from toolfold.mounts import built_in_tools

    config = load_config()
    cache = config.directories.cache
    listings = {each.name: last_listing(each, cache) for each in config.servers if each.enabled}
    for tool in KnownTools(listings, built_in=built_in_tools()).tools:
        yield tool.path, sentence(tool)


def runs() -> Names:
    """Yield the ids of the newest runs."""
    from toolfold.entrypoints.commands.runs_text import read_journal
    from toolfold.journal.runs import state_of

    for run in read_journal(lambda journal: journal.newest(20)) or []:
        first = next((line for line in run.code.head.splitlines() if line.strip()), "")
        yield run.id, f"{state_of(run)}: {first[:50]}"


def sessions() -> Names:
    """Yield the sessions of this project."""
    from toolfold.execution.sessions.sessions import sessions_of

    for info in sessions_of(load_config()).list():
        yield info.name, "session"


def skills() -> Names:
    """Yield the skills that are saved."""
    from toolfold.skills.library import open_library

    for each in open_library(load_config()).all():
        yield str(each.name), "skill"


def keys() -> Names:
    """Yield the keys that are valid."""
    from toolfold.entrypoints.http.keys import Keys

    for key in Keys.of(load_config()).all():
        if key.revoked is None:
            yield key.id, key.name
