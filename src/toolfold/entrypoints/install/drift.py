"""What has changed in clients since toolfold was installed there."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from toolfold.config.paths import Directories
from toolfold.entrypoints.install.clients import (
    CLIENTS,
    ClientFile,
    InstallContext,
    find_client_file,
)
from toolfold.entrypoints.install.entries import find_servers
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.fold import read_document
from toolfold.entrypoints.install.records import FileRecords
from toolfold.entrypoints.install.switches import without_switched_off
from toolfold.errors import ConfigError, shown


def drift(directories: Directories, environ: Mapping[str, str], cwd: Path) -> list[str]:
    """Return a line for each client that is not as install left it, with what to do about it."""
    context = InstallContext(directories=directories, environ=environ, cwd=cwd)
    records = FileRecords(directories.state, Files())
    lines: list[str] = []
    try:
        for place, keeps in installed_files(context, records):
            lines += _drift_of(place, context, keeps=keeps)
    except ConfigError as error:
        lines.append(str(error))
    return lines


def installed_files(
    context: InstallContext, records: FileRecords
) -> Iterator[tuple[ClientFile, bool]]:
    """Yield the places where install put toolfold, each with whether it was to leave the servers.

    Raises:
        ConfigError: A record of ours is broken, or there is no home.
    """
    for client in CLIENTS:
        for scope in ("user", "project"):
            place = find_client_file(client, scope, context)
            record = records.load(place)
            if record.is_installed:
                yield place, record.steps[-1].keeps_servers


def _drift_of(place: ClientFile, context: InstallContext, *, keeps: bool) -> Iterator[str]:
    files = Files()
    try:
        _, document = read_document(place, files)
        found = without_switched_off(find_servers(place, document), place, context, files)
    except ConfigError as error:
        yield f"{place.title}: {error}"
        return
    if not any(each.is_own for each in found):
        yield (
            f"{place.title}: toolfold's entry is gone from {place.path}: "
            f"`toolfold install {place.client}{_flag(place)}` restores it"
        )
    elif added := [] if keeps else [each for each in found if each.is_movable]:
        names = ", ".join(shown(each.name) for each in added)
        yield (
            f"{place.title}: {place.path} has servers beside toolfold: {names}; "
            f"`toolfold sync` folds them in"
        )


def _flag(place: ClientFile) -> str:
    return " --project" if place.scope == "project" else ""
