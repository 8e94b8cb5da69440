"""Gather servers from every file that counts, and from none that is not trusted."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from toolfold.config.faults import ConfigFault
from toolfold.config.paths import Directories, home_of, locate, project_server_file
from toolfold.config.serverfile import ServerContext, ServerFile, outline_servers, parse_servers
from toolfold.config.servers import ServerConfig, ServerFault
from toolfold.config.trust import Trust
from toolfold.errors import ConfigError
from toolfold.storage.files import read_file

_MAX_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredServers:
    """The servers sorted by name, what is wrong with others, and the files that were read."""

    servers: tuple[ServerConfig, ...]
    faults: tuple[ConfigFault | ServerFault, ...]
    sources: tuple[Path, ...]


def gather_servers(
    directories: Directories, project: Path | None, context: ServerContext
) -> GatheredServers:
    """Read the user's file, then the project's, whose entries replace the user's by name.

    An entry that is at fault or disabled replaces too: the user's of that name is another server.
    """
    user = _read_user_file(locate(directories.config / "mcp.json"), context)
    path = None if project is None else project_server_file(project)
    if path is None:
        return _gathered(user)
    return _gathered(user, _read_project_file(path, context, Trust(directories.state)))


def gather_from(path: Path, context: ServerContext) -> GatheredServers:
    """Read one file that the user named, which needs no trust.

    Raises:
        ConfigError: There is no such file, or it cannot be used as a whole.
    """
    path = locate(path)
    try:
        content = read_file(path)
        if content is None:
            raise ConfigError("there is no such file; --config takes a file with mcpServers")
        return _gathered((path, parse_servers(path, content, context)))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}.") from error


_FileRead: TypeAlias = tuple[Path | None, ServerFile]
_NOTHING: _FileRead = (None, ServerFile(servers={}, faults=()))


def _read_user_file(path: Path, context: ServerContext) -> _FileRead:
    try:
        content = read_file(path)
        return _NOTHING if content is None else (path, parse_servers(path, content, context))
    except ConfigError as error:
        return path, _only_fault(path, str(error))


def _read_project_file(path: Path, context: ServerContext, trust: Trust) -> _FileRead:
    try:
        content = read_file(path)
        if content is None:
            return _NOTHING
        if trust.is_trusted(path, content):
            return path, parse_servers(path, content, context, cwd=home_of(path))
        lines = outline_servers(content)
    except ConfigError as error:
        return path, _only_fault(path, str(error))
    if not lines:
        return path, ServerFile(servers={}, faults=())
    return path, _only_fault(path, _not_trusted(path, lines))


def _not_trusted(path: Path, lines: tuple[str, ...]) -> str:
    shown = "; ".join(lines[:_MAX_SHOWN])
    more = f"; and {len(lines) - _MAX_SHOWN} more" if len(lines) > _MAX_SHOWN else ""
    return (
        f"servers in {path} are not started: run `toolfold trust` after reading it ({shown}{more})"
    )


def _only_fault(path: Path, reason: str) -> ServerFile:
    return ServerFile(servers={}, faults=(ConfigFault(source=path, reason=reason),))


def _gathered(*files: _FileRead) -> GatheredServers:
    entries: dict[str, ServerConfig | ServerFault | None] = {}
    for _, file in files:
        entries.update(file.servers)
    in_order = [entries[name] for name in sorted(entries)]
    of_files = [fault for _, file in files for fault in file.faults]
    of_servers = [entry for entry in in_order if isinstance(entry, ServerFault)]
    return GatheredServers(
        servers=tuple(entry for entry in in_order if isinstance(entry, ServerConfig)),
        faults=(*of_files, *of_servers),
        sources=tuple(path for path, _ in files if path is not None),
    )
