"""A home and a project in a temporary directory, and the configuration that they make."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from toolfold.config.config import Config, load_config
from toolfold.config.servers import ServerConfig
from toolfold.config.trust import Trust

# Many tests may share one slow machine.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Place:
    """A user's home and one project in it; tests write real files there."""

    home: Path
    project: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def user_file(self) -> Path:
        return self.home / ".config/toolfold/mcp.json"

    @property
    def user_settings(self) -> Path:
        return self.home / ".config/toolfold/config.toml"

    @property
    def project_file(self) -> Path:
        return self.project / ".mcp.json"

    @property
    def project_settings(self) -> Path:
        return self.project / ".toolfold/config.toml"

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_servers(self, path: Path, **servers: Any) -> Path:
        return self.write(path, json.dumps({"mcpServers": servers}))

    def load(self, **given: Any) -> Config:
        environ = {"HOME": str(self.home), **self.environ}
        return load_config(**{"cwd": self.project, "environ": environ, **given})

    def server(self, entry: dict[str, Any], **given: Any) -> ServerConfig:
        """Load one entry from the user's file, which must be without fault."""
        self.write_servers(self.user_file, it=entry)
        config = self.load(**given)
        assert config.faults == ()
        (server,) = config.servers
        return server

    def reasons(self, text: str) -> list[str]:
        """Load a text as the user's file beside nothing else; return what is wrong with it."""
        self.write(self.user_file, text)
        return [fault.reason for fault in self.load().faults]

    def trust(self, path: Path) -> None:
        Trust(self.load().directories.state).trust(path)
