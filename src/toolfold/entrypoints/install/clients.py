"""Where each client keeps its servers, and where toolfold keeps what it takes over."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from toolfold.config.paths import Directories, find_project
from toolfold.entrypoints.install.servertext import Table
from toolfold.errors import ConfigError

Client: TypeAlias = Literal["claude", "cursor", "vscode", "codex"]
Scope: TypeAlias = Literal["user", "project"]

CLIENTS: tuple[Client, ...] = ("claude", "cursor", "vscode", "codex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
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
class Place:
    """One file of one client, and toolfold's file that takes over its servers."""

    client: Client
    scope: Scope
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


def find_place(client: Client, scope: Scope, around: Around) -> Place:
    """Return where a client keeps the servers of a scope."""
    path = _user_file(client, around) if scope == "user" else _project_file(client, around.project)
    tables: tuple[Table, ...] = (_TABLES[client],)
    if client == "claude" and scope == "user":
        keys = {str(around.cwd), str(around.cwd.resolve()), str(around.project)}
        tables += tuple(("projects", key, "mcpServers") for key in sorted(keys))
    is_project = scope == "project"
    folder = around.project / ".toolfold" if is_project else around.directories.config
    return Place(
        client=client,
        scope=scope,
        path=path,
        tables=tables,
        marks=_marks(client, scope, path, around),
        target=folder / "mcp.json",
        home=around.project if is_project else None,
    )


_TABLES: Mapping[Client, Table] = {
    "claude": ("mcpServers",),
    "cursor": ("mcpServers",),
    "vscode": ("servers",),
    "codex": ("mcp_servers",),
}


def _user_file(client: Client, around: Around) -> Path:
    match client:
        case "claude":
            return around.directory("CLAUDE_CONFIG_DIR", "") / ".claude.json"
        case "cursor":
            return around.home / ".cursor/mcp.json"
        case "vscode":
            return _vscode_profile(around) / "mcp.json"
        case "codex":
            return around.directory("CODEX_HOME", ".codex") / "config.toml"


def _project_file(client: Client, project: Path) -> Path:
    names = {
        "claude": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
        "codex": ".codex/config.toml",
    }
    return project / names[client]


def _vscode_profile(around: Around) -> Path:
    if sys.platform == "darwin":
        return around.home / "Library/Application Support/Code/User"
    if sys.platform == "win32":
        return around.directory("APPDATA", "AppData/Roaming") / "Code/User"
    return around.directory("XDG_CONFIG_HOME", ".config") / "Code/User"


def _marks(client: Client, scope: Scope, path: Path, around: Around) -> tuple[Path, ...]:
    if client == "claude":
        settings = claude_directory(around) if scope == "user" else around.project / ".claude"
        return (path, settings)
    return (path.parent,)


def claude_directory(around: Around) -> Path:
    """Return where Claude Code keeps the user's settings."""
    return around.directory("CLAUDE_CONFIG_DIR", ".claude")
