"""What a benchmark runs on: server commands, configuration files, data files."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jobs

ROOT = Path(__file__).parents[1]
COPIES = 8
_NPM = Path("npm/node_modules/@modelcontextprotocol")


class Unavailable(Exception):
    """A benchmark cannot run here; the message says why."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the tools are, and a directory to work in."""

    tools: Path
    directory: Path

    def npm_server(self, name: str) -> list[str]:
        """Return the command of an npm server such as `memory`.

        Raises:
            Unavailable: Node.js or the server is not installed.
        """
        node = shutil.which("node")
        script = self.tools / _NPM / f"server-{name}" / "dist" / "index.js"
        if node is None:
            raise Unavailable("Node.js is not installed")
        if not script.exists():
            raise Unavailable(f"the npm server {name!r} is not installed; `make tools` does that")
        return [node, str(script)]

    def codemode(self) -> Path:
        """Return the Python of FastMCP's environment.

        Raises:
            Unavailable: FastMCP CodeMode cannot be imported there.
        """
        python = self.tools / "fastmcp" / "bin" / "python"
        if not python.exists():
            raise Unavailable("FastMCP is not installed; `make bench` tries to")
        attempt = "import fastmcp.experimental.transforms.code_mode, pydantic_monty"
        if subprocess.run([python, "-c", attempt], capture_output=True, check=False).returncode:
            raise Unavailable("FastMCP is installed but cannot be imported")
        return python

    def side(self, name: str, *, servers: int = 1) -> "Side":
        """Make the configuration and data of one side: nobody else touches them."""
        home = self.directory / name
        home.mkdir()
        entries = {"records": self._memory(home / "graph.jsonl")}
        if servers > 1:
            for copy in range(2, COPIES + 1):
                entries[f"records_{copy}"] = self._memory(home / f"graph_{copy}.jsonl")
            entries["everything"] = _entry([*self.npm_server("everything"), "stdio"])
            entries["filesystem"] = _entry([*self.npm_server("filesystem"), str(home)])
        return _made(Side(home, entries))

    def reads(self, name: str) -> "Side":
        """Make the configuration of a side whose one server is slow to read from."""
        home = self.directory / name
        home.mkdir()
        script = Path(__file__).with_name("workers") / "slow_reads.py"
        return _made(Side(home, {"slow": _entry([sys.executable, str(script)])}))

    def _memory(self, file: Path) -> dict[str, Any]:
        file.write_text(jobs.graph(is_done=False), encoding="utf-8")
        return _entry(self.npm_server("memory"), MEMORY_FILE_PATH=str(file))


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its servers and their data."""

    home: Path
    entries: dict[str, Any]

    @property
    def config(self) -> Path:
        """The file that names the servers."""
        return self.home / "mcp.json"

    def reset(self) -> None:
        """Put the records back to what they were; the server reads them anew at each call."""
        self._data.write_text(jobs.graph(is_done=False), encoding="utf-8")

    def verify(self) -> None:
        """Make sure that the batch job was done, whole."""
        if self._data.read_text(encoding="utf-8") != jobs.graph(is_done=True):
            raise RuntimeError(f"{self.home.name}: the job left other data than it should")

    @property
    def _data(self) -> Path:
        return self.home / "graph.jsonl"


def _made(side: Side) -> Side:
    side.config.write_text(json.dumps({"mcpServers": side.entries}), encoding="utf-8")
    side.reset()
    return side


def _entry(command: list[str], **env: str) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:], "env": env}
