"""The configuration of one start: read once, frozen; the only reader of the environment."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from toolfold.config.caller import current_caller
from toolfold.config.faults import ConfigFault
from toolfold.config.gather import gather_from, gather_servers
from toolfold.config.layers import (
    Layer,
    SettingsSchema,
    Values,
    read_environ,
    read_overrides,
    read_toml,
    tighten,
)
from toolfold.config.paths import Directories, find_project, project_name, workspace_place
from toolfold.config.serverfile import ServerContext
from toolfold.config.servers import ServerConfig, ServerFault
from toolfold.config.settings import Settings, settings_of, settings_schema
from toolfold.errors import ConfigError
from toolfold.relay.manifest import project_files
from toolfold.storage.files import read_file

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

    tenant: str = ""
    """The namespace whose keys this is for, to whom the user's own files are none of theirs; empty
    for the user."""

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
        """Where notes that are stored here belong to."""
        return self.settings.memory.namespace or project_name(self.project)


def load_config(
    *,
    config_file: Path | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] = _NO_OVERRIDES,
) -> Config:
    """Read all files that count in `cwd`, of this process unless given, as is `environ`.

    Settings: `overrides` (by dotted key, `limits.calls`) before the environment before the
    project's `.toolfold/config.toml`, which may only tighten, before the user's `config.toml`.

    Servers: the user's `mcp.json`, overridden by name by the project's `.toolfold/mcp.json`, else
    `.mcp.json`, once that is trusted; or `config_file` instead of them all, which needs no trust.

    Raises:
        ConfigError: `config_file` cannot be used, a setting does not fit, or there is no home.
    """
    environ = environment() if environ is None else environ
    cwd = current_directory() if cwd is None else cwd
    directories, project = Directories.from_environ(environ), find_project(cwd)
    read = _read_settings(directories, project, environ, overrides)
    context = ServerContext(
        environ=environ,
        call_timeout_s=read.settings.call_timeout_s,
        options=read.settings.servers,
    )
    if config_file is None:
        found = gather_servers(directories, project, context)
    else:
        found = gather_from(cwd / config_file, context)
    return Config(
        directories=directories,
        project=project,
        start_directory=project or cwd,
        search_path=environ.get("PATH", os.defpath),
        home=environ.get("HOME", ""),
        servers=found.servers,
        faults=(*read.faults, *found.faults),
        settings=read.settings,
        sources=(*read.sources, *found.sources),
    )


def deciding_files(config: Config, cwd: Path, config_file: str | None) -> list[Path]:
    """Return every file that has a say in `config`, whether it exists or not.

    `cwd` and `config_file` are those that it was loaded with.
    """
    directories = config.directories
    files = [directories.config / name for name in ("config.toml", "mcp.json")]
    files.append(directories.state / "trust.json")
    if config_file:
        files.append(cwd / config_file)
    if config.project is not None:
        files += map(Path, project_files(str(config.project)))
    return files


class _Read(NamedTuple):
    settings: Settings
    faults: tuple[ConfigFault, ...]
    sources: tuple[Path, ...]


def _read_settings(
    directories: Directories,
    project: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
) -> _Read:
    schema = settings_schema()
    faults: list[ConfigFault] = []
    sources: list[Path] = []

    def toml(path: Path) -> Values:
        layer = _read_toml_file(path, schema)
        if layer is None:
            return {}
        sources.append(path)
        return note(path, layer)

    def note(source: Path | None, layer: Layer) -> Values:
        faults.extend(ConfigFault(source=source, reason=remark) for remark in layer.remarks)
        return layer.values

    values = toml(directories.config / "config.toml")
    if project is not None:
        path = project / ".toolfold/config.toml"
        values = note(path, tighten(values, toml(path), schema))
    values |= note(None, read_environ(environ, schema))
    values |= note(None, read_overrides(overrides, schema))
    return _Read(settings_of(values), tuple(faults), tuple(sources))


def _read_toml_file(path: Path, schema: SettingsSchema) -> Layer | None:
    try:
        content = read_file(path)
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
