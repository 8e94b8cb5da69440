"""A user with a home and a project, clients in it, and the command line."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import client_files


@dataclass
class Ran:
    status: int
    out: str
    err: str


@dataclass
class Machine:
    """A user's home with one project in it, and toolfold's command line."""

    home: Path
    project: Path
    run: Callable[..., Ran]

    @property
    def servers_file(self) -> Path:
        return self.home / ".config/toolfold/mcp.json"

    def servers(self, path: Path | None = None) -> dict[str, Any]:
        servers: dict[str, Any] = json.loads((path or self.servers_file).read_text())["mcpServers"]
        return servers

    def path(self, client: str, scope: str = "--user") -> Path:
        if scope == "--project":
            names = {
                "claude": ".mcp.json",
                "cursor": ".cursor/mcp.json",
                "vscode": ".vscode/mcp.json",
            }
            return self.project / names.get(client, ".codex/config.toml")
        names = {"claude": ".claude.json", "cursor": ".cursor/mcp.json"}
        names |= {"vscode": ".config/Code/User/mcp.json", "codex": ".codex/config.toml"}
        return self.home / names[client]

    def write(self, client: str, text: str, scope: str = "--user") -> Path:
        path = self.path(client, scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def state(self) -> dict[str, tuple[bytes, int, int]]:
        """Every file there is, with what says that nobody wrote it anew; caches do not count."""
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and path.suffix != ".lock" and ".cache" not in path.parts
        }


CLIENTS = ["claude", "cursor", "vscode", "codex"]


def realistic(client: str, machine: Machine) -> str:
    texts = {
        "cursor": client_files.CURSOR,
        "vscode": client_files.VSCODE,
        "codex": client_files.CODEX,
    }
    return texts.get(client) or client_files.claude_user(machine.project)
