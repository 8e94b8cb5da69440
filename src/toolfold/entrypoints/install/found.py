"""What there is before anything is installed: clients, and how many servers each has."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from toolfold.config.paths import Directories
from toolfold.entrypoints.install.clients import (
    CLIENTS,
    ClientName,
    InstallContext,
    find_client_file,
)
from toolfold.entrypoints.install.entries import find_servers
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.fold import read_document
from toolfold.errors import ConfigError


class FoundClient(NamedTuple):
    """A client that is in use here."""

    client: ClientName
    servers: int
    """How many servers it starts itself."""
    is_installed: bool
    """Whether toolfold is one of them."""


def found_clients(
    directories: Directories, environ: Mapping[str, str], cwd: Path
) -> list[FoundClient]:
    """Return the clients that are in use, for the user; one whose file is broken has no servers."""
    around = InstallContext(directories=directories, environ=environ, cwd=cwd)
    found = []
    for client in CLIENTS:
        try:
            place = find_client_file(client, "user", around)
            if not place.is_in_use:
                continue
            _, document = read_document(place, Files())
            servers = find_servers(place, document)
        except ConfigError:
            found.append(FoundClient(client, 0, is_installed=False))
            continue
        own = [each for each in servers if each.is_own]
        found.append(FoundClient(client, len(servers) - len(own), is_installed=bool(own)))
    return found


def next_command(found: list[FoundClient]) -> str:
    """Return the one command that takes over the servers of these clients; empty if none has."""
    waiting = [each.client for each in found if each.servers and not each.is_installed]
    if not waiting:
        return ""
    return f"toolfold install {waiting[0] if len(waiting) == 1 else 'all'}"
