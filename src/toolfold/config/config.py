"""The configuration of one start: read once, frozen; the only reader of the environment."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from toolfold.config.layers import (
    Layer,
    SettingsSchema,
    Values,
    dotted,
    read_environ,
    read_overrides,
    read_toml,
    tighten,
    variable_of,
)
from toolfold.config.paths import (
    Directories,
    find_project,
    home_of,
    locate,
    project_name,
    project_server_file,
    workspace_place,
)
from toolfold.config.remotes import notes_name
from toolfold.config.serverfile import ServerContext, ServerFile, outline_servers, parse_servers
from toolfold.config.servers import ServerConfig, ServerFault
from toolfold.config.settings import Settings, settings_of, settings_schema
from toolfold.config.trust import Trust
from toolfold.errors import ConfigError, ConfigFault, StoreError
from toolfold.relay.manifest import NEEDED, project_files
from toolfold.storage.files import ReadFile, read_file
from toolfold.storage.secrets import SecretStore

# For whom this process works at the moment: for itself, or for a program that asked it to.
#
# Commands are written as programs that have a directory and an environment. The daemon runs them
# for terminals elsewhere, and then those of the terminal count.


@dataclass(frozen=True, slots=True)
class CommandCaller:
    """Where a program is, and what of its environment it gave."""

    directory: Path
    environ: Mapping[str, str]


_caller: ContextVar[CommandCaller | None] = ContextVar("caller", default=None)


def current_caller() -> CommandCaller | None:
    """Return whom the code that asks works for; None for this process itself."""
    return _caller.get()


@contextmanager
def acting_for(caller: CommandCaller) -> Iterator[None]:
    """Work for a caller in this context, and in the threads and tasks that it starts."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


_MAX_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredServers:
    """The servers sorted by name, what is wrong with others, and the files that were read."""

    servers: tuple[ServerConfig, ...]
    faults: tuple[ConfigFault | ServerFault, ...]
    sources: tuple[Path, ...]


def gather_servers(
    directories: Directories,
    project: Path | None,
    context: ServerContext,
    read: ReadFile = read_file,
) -> GatheredServers:
    """Read the user's file, then the project's, whose entries replace the user's by name.

    An entry that is at fault or disabled replaces too: the user's of that name is another server.
    """
    user = _read_user_file(locate(directories.config / "mcp.json"), context, read)
    path = None if project is None else project_server_file(project)
    if path is None:
        return _gathered(user)
    project_file = _read_project_file(path, context, Trust(directories.state), read)
    return _gathered(user, project_file)


def gather_from(path: Path, context: ServerContext, read: ReadFile = read_file) -> GatheredServers:
    """Read one file that the user named, which needs no trust.

    Raises:
        ConfigError: There is no such file, or it cannot be used as a whole.
    """
    path = locate(path)
    try:
        content = read(path)
        if content is None:
            raise ConfigError("there is no such file; --config takes a file with mcpServers")
        return _gathered((path, parse_servers(path, content, context)))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}.") from error


_FileRead: TypeAlias = tuple[Path | None, ServerFile]
_NOTHING: _FileRead = (None, ServerFile(servers={}, faults=()))


def _read_user_file(path: Path, context: ServerContext, read: ReadFile) -> _FileRead:
    try:
        content = read(path)
        return _NOTHING if content is None else (path, parse_servers(path, content, context))
    except ConfigError as error:
        return path, _only_fault(path, str(error))


def _read_project_file(
    path: Path, context: ServerContext, trust: Trust, read: ReadFile
) -> _FileRead:
    try:
        content = read(path)
        if content is None:
            return _NOTHING
        if trust.is_trusted(path, content):
            home = home_of(path)
            return path, parse_servers(path, content, context, cwd=home, is_project=True)
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


_NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything the user configured, as it was when it was read."""

    directories: Directories
    project: Path | None
    start_directory: Path
    """Where servers start whose entries do not say: in the project, or where the client is."""

    search_path: str
    """The PATH in which their commands are found."""

    home: str
    """The HOME that they are given."""

    servers: tuple[ServerConfig, ...]
    """Those that may be started, sorted by name."""

    faults: tuple[ConfigFault | ServerFault, ...]
    settings: Settings
    sources: tuple[Path, ...]
    """The files that were read, in the order of reading."""

    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where each setting was said, by its dotted key: a file, a variable, `--set`."""

    tenant: str = ""
    """The namespace whose keys this is for, to whom the user's own files are none of theirs; empty
    for the user."""

    project_notes: str = ""
    """What the notes of the project are called: after its git remote, else as its directory."""

    @property
    def is_tenant(self) -> bool:
        """Whether it is for who comes with a key."""
        return bool(self.tenant)

    @property
    def workspace(self) -> Path:
        """Where files that outlive runs are kept; its directory is of that name."""
        return workspace_place(self.directories, self.project, self.tenant)

    @property
    def namespace(self) -> str:
        """What approvals, placeholders and sessions belong to: one directory, whatever git says."""
        return self.settings.memory.namespace or project_name(self.project)

    @property
    def notes_namespace(self) -> str:
        """Where notes that are stored here belong to: every checkout of a repository has one."""
        return self.settings.memory.namespace or self.project_notes or project_name(self.project)

    @property
    def former_notes(self) -> str:
        """The namespace of the directory, whose notes move in; "" if that is where they are."""
        return "" if self.namespace == self.notes_namespace else self.namespace


def load_config(
    *,
    config_file: Path | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
    read: ReadFile = read_file,
) -> Config:
    """Read all files that count in `cwd`, of this process unless given, as is `environ`.

    Settings: `overrides` (by dotted key, `limits.calls`) before the environment before the
    project's `.toolfold/config.toml`, which may only tighten, before the user's `config.toml`.

    Servers: the user's `mcp.json`, overridden by name by the project's `.toolfold/mcp.json`, else
    `.mcp.json`, once that is trusted; or `config_file` instead of them all, which needs no trust.
    All of them are read by `read`.

    Raises:
        ConfigError: `config_file` cannot be used, a setting does not fit, or there is no home.
    """
    environ = environment() if environ is None else environ
    cwd = current_directory() if cwd is None else cwd
    directories, project = Directories.from_environ(environ), find_project(cwd)
    found_settings = _read_settings(directories, project, environ, overrides, read)
    context = ServerContext(
        environ=environ,
        call_timeout_s=found_settings.settings.call_timeout_s,
        options=found_settings.settings.servers,
        revisions=secret_revisions(directories),
    )
    if config_file is None:
        found = gather_servers(directories, project, context, read)
    else:
        found = gather_from(cwd / config_file, context, read)
    return Config(
        directories=directories,
        project=project,
        start_directory=project or cwd,
        search_path=environ.get("PATH", os.defpath),
        home=environ.get("HOME", ""),
        servers=found.servers,
        faults=(*found_settings.faults, *found.faults),
        settings=found_settings.settings,
        sources=(*found_settings.sources, *found.sources),
        origins=found_settings.origins,
        project_notes=notes_name(project),
    )


def deciding_files(config: Config, cwd: Path, config_file: str | None) -> list[Path]:
    """Return every file that has a say in `config`, whether it exists or not.

    `cwd` and `config_file` are those that it was loaded with.
    """
    directories = config.directories
    files = [directories.config / name for name in ("config.toml", "mcp.json")]
    files += [directories.state / "trust.json", SecretStore.path(directories.data)]
    if config_file:
        files.append(cwd / config_file)
    if config.project is not None:
        files += map(Path, project_files(str(config.project)))
    return files


def secret_revisions(directories: Directories) -> dict[str, str]:
    """Return which secrets were given; where they cannot be read, who needs one says so."""
    try:
        kept = SecretStore(directories.data).kept()
    except StoreError:
        return {}
    return {name: each.revision for name, each in kept.items()}


class _Read(NamedTuple):
    settings: Settings
    faults: tuple[ConfigFault, ...]
    sources: tuple[Path, ...]
    origins: Mapping[str, str]


def _read_settings(
    directories: Directories,
    project: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    read: ReadFile,
) -> _Read:
    schema = settings_schema()
    faults: list[ConfigFault] = []
    sources: list[Path] = []

    def toml(path: Path) -> Values:
        layer = _read_toml_file(path, schema, read)
        if layer is None:
            return {}
        sources.append(path)
        return note(path, layer)

    def note(source: Path | None, layer: Layer) -> Values:
        faults.extend(ConfigFault(source=source, reason=remark) for remark in layer.remarks)
        return layer.values

    path = directories.config / "config.toml"
    values = toml(path)
    origins = dict.fromkeys(values, str(path))
    if project is not None:
        path, users = project / ".toolfold/config.toml", values
        values = note(path, tighten(users, toml(path), schema))
        origins |= {key: str(path) for key in values if values[key] != users.get(key)}
    said = note(None, read_environ(environ, schema))
    origins |= {key: variable_of(key) for key in said}
    given = note(None, read_overrides(overrides, schema))
    origins |= dict.fromkeys(given, "--set")
    dotted_origins = {dotted(key): origin for key, origin in origins.items()}
    settings = settings_of(values | said | given)
    return _Read(settings, tuple(faults), tuple(sources), dotted_origins)


def _read_toml_file(path: Path, schema: SettingsSchema, read: ReadFile) -> Layer | None:
    try:
        content = read(path)
        return None if content is None else read_toml(content, schema)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}.") from error


def environment() -> Mapping[str, str]:
    """Return the environment that counts: of the caller we work for, else of this process."""
    caller = current_caller()
    return dict(os.environ if caller is None else caller.environ)


def current_directory() -> Path:
    """Return where the caller we work for is, else where this process is.

    Raises:
        ConfigError: The directory is gone.
    """
    if (caller := current_caller()) is not None:
        return caller.directory
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(f"The current directory cannot be used: {error.strerror}.") from error


def parse_overrides(texts: Iterable[str]) -> dict[str, object]:
    """Read `KEY=VALUE` texts as the values of `--set` are written.

    Raises:
        ConfigError: One has no `=`.
    """
    return dict(_override(text) for text in texts)


def _override(text: str) -> tuple[str, object]:
    key, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set takes KEY=VALUE, such as limits.calls=50; got {text!r}.")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


_STAND_IN = "x"


def variables_named(
    *,
    config_file: Path | None,
    cwd: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    read: ReadFile = read_file,
) -> list[str]:
    """Return the names, sorted, of variables that are not in `environ` and would be used.

    Raises:
        ConfigError: As `load_config`.
    """
    asked = _RecordingEnviron(environ)
    load_config(config_file=config_file, cwd=cwd, environ=asked, overrides=overrides, read=read)
    return sorted(asked.names)


class _RecordingEnviron(dict[str, str]):
    """Gives any variable a value, and remembers which ones it was asked for."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.names: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Return what is there; else remember the name."""
        if name in self or name in NEEDED or name.startswith("TOOLFOLD_"):
            return super().get(name, default)
        self.names.add(name)
        return _STAND_IN
