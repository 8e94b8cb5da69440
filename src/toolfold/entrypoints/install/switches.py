"""Servers that the user has switched off in Claude Code: moved, they would be on again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.install.clients import ClientFile, InstallContext, find_client_file
from toolfold.entrypoints.install.entries import FoundServer
from toolfold.entrypoints.install.files import Files, naming
from toolfold.entrypoints.install.rules import settings_files
from toolfold.errors import shown
from toolfold.jsontypes import Json

_TOGGLED = "disabledMcpServers"
_REFUSED = "disabledMcpjsonServers"


def without_switched_off(
    found: Sequence[FoundServer], place: ClientFile, context: InstallContext, files: Files
) -> list[FoundServer]:
    """Return the servers; each that is switched off somewhere gets that as a reason to stay.

    Raises:
        ConfigError: A file that would say so cannot be read; the message names it.
    """
    if place.client != "claude" or not any(each.is_movable for each in found):
        return list(found)
    switches = list(_switches(place, context, files))
    return [_with_reason(each, switches) for each in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    """A server that is off: its name, and where that is said."""

    name: str
    where: str


def _with_reason(found: FoundServer, switches: Sequence[_Switch]) -> FoundServer:
    project = found.table[1] if found.is_local else None
    for switch in switches:
        is_meant = switch.name == found.name and project in (None, switch.where)
        if found.is_movable and is_meant:
            where = shown(switch.where)
            reason = f"is switched off in {where}, and toolfold would switch it on"
            return replace(found, entry={}, reason=reason)
    return found


def _switches(place: ClientFile, context: InstallContext, files: Files) -> Iterator[_Switch]:
    """Yield what is off; of a project's file, only what is off in that project."""
    is_project = place.scope == "project"
    keys = (_TOGGLED, _REFUSED) if is_project else (_TOGGLED,)
    projects = _read(find_client_file("claude", "user", context).path, files, "projects")
    for path, settings in projects.items() if isinstance(projects, dict) else ():
        if not is_project or Path(path).is_relative_to(context.project):
            yield from _named(settings, keys, where=path)
    for file in settings_files(place, context) if is_project else ():
        yield from _named({_REFUSED: _read(file, files, _REFUSED)}, keys, where=str(file))


def _read(path: Path, files: Files, key: str) -> Json:
    text = files.read(path)
    if text is None or not text.strip():
        return None
    with naming(path):
        root = parse_jsonc(text.encode()).value
    return root.get(key) if isinstance(root, dict) else None


def _named(settings: Json, keys: Sequence[str], *, where: str) -> Iterator[_Switch]:
    for key in keys:
        names = settings.get(key) if isinstance(settings, dict) else None
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str):
                yield _Switch(name=name, where=where)
