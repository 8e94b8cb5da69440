"""Where each client keeps its servers, and where toolfold keeps what it takes over."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from toolfold.config.paths import Directories, find_project
from toolfold.entrypoints.install.servertext import Table
from toolfold.errors import ConfigError

ClientName: TypeAlias = Literal["claude", "cursor", "vscode", "codex"]
InstallScope: TypeAlias = Literal["user", "project"]

CLIENTS: tuple[ClientName, ...] = ("claude", "cursor", "vscode", "codex")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallContext:
    """Where and for whom a command runs."""

    directories: Directories
    environ: Mapping[str, str]
    cwd: Path

    @property
    def project(self) -> Path:
        """The project around the current directory, or that directory where there is none."""
        return find_project(self.cwd) or self.cwd.resolve()

    @property
    def home(self) -> Path:
        """The user's home.

        Raises:
            ConfigError: The environment names none.
        """
        home = self.environ.get("HOME") or self.environ.get("USERPROFILE")
        if not home:
            raise ConfigError("There is no HOME in the environment, so no client can be found.")
        return Path(home)

    def directory(self, variable: str, default: str) -> Path:
        """Return the directory that a variable names, or one in the user's home."""
        return Path(self.environ.get(variable) or self.home / default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """One file of one client, and toolfold's file that takes over its servers."""

    client: ClientName
    scope: InstallScope
    path: Path
    tables: tuple[Table, ...]
    """Where it names servers; toolfold's own entry goes into the first."""

    marks: tuple[Path, ...]
    """What exists where the client is in use."""

    target: Path
    home: Path | None
    """Where relative paths in the file start, if that is always the same directory."""

    @property
    def title(self) -> str:
        """How the place is called in what we print."""
        return f"{self.client} ({self.scope})"

    @property
    def is_in_use(self) -> bool:
        """Whether there is anything of the client."""
        return any(mark.exists() or mark.is_symlink() for mark in self.marks)


def find_client_file(
    client: ClientName, scope: InstallScope, context: InstallContext
) -> ClientFile:
    """Return where a client keeps the servers of a scope."""
    path = (
        _user_file(client, context) if scope == "user" else _project_file(client, context.project)
    )
    tables: tuple[Table, ...] = (_TABLES[client],)
    if client == "claude" and scope == "user":
        keys = {str(context.cwd), str(context.cwd.resolve()), str(context.project)}
        tables += tuple(("projects", key, "mcpServers") for key in sorted(keys))
    is_project = scope == "project"
    folder = context.project / ".toolfold" if is_project else context.directories.config
    return ClientFile(
        client=client,
        scope=scope,
        path=path,
        tables=tables,
        marks=_marks(client, scope, path, context),
        target=folder / "mcp.json",
        home=context.project if is_project else None,
    )


_TABLES: Mapping[ClientName, Table] = {
    "claude": ("mcpServers",),
    "cursor": ("mcpServers",),
    "vscode": ("servers",),
    "codex": ("mcp_servers",),
}


def _user_file(client: ClientName, context: InstallContext) -> Path:
    match client:
        case "claude":
            return context.directory("CLAUDE_CONFIG_DIR", "") / ".claude.json"
        case "cursor":
            return context.home / ".cursor/mcp.json"
        case "vscode":
            return _vscode_profile(context) / "mcp.json"
        case "codex":
            return context.directory("CODEX_HOME", ".codex") / "config.toml"


def _project_file(client: ClientName, project: Path) -> Path:
    names = {
        "claude": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
        "codex": ".codex/config.toml",
    }
    return project / names[client]


def _vscode_profile(context: InstallContext) -> Path:
    if sys.platform == "darwin":
        return context.home / "Library/Application Support/Code/User"
    if sys.platform == "win32":
        return context.directory("APPDATA", "AppData/Roaming") / "Code/User"
    return context.directory("XDG_CONFIG_HOME", ".config") / "Code/User"


def _marks(
    client: ClientName, scope: InstallScope, path: Path, context: InstallContext
) -> tuple[Path, ...]:
    if client == "claude":
        settings = claude_directory(context) if scope == "user" else context.project / ".claude"
        return (path, settings)
    return (path.parent,)


def claude_directory(context: InstallContext) -> Path:
    """Return where Claude Code keeps the user's settings."""
    return context.directory("CLAUDE_CONFIG_DIR", ".claude")


def claude_settings(context: InstallContext) -> tuple[Path, Path]:
    """Return the files in which Claude Code has hooks: the user's, and the user's in a project."""
    own = context.project / ".claude" / "settings.local.json"
    return claude_directory(context) / "settings.json", own
