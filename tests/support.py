"""Find the servers and files that tests run against."""

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from toolfold.app import App
from toolfold.config.config import Config
from toolfold.execution.report import RunReport

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
_TOOLS = ROOT / ".tools"
_OF_THE_SDK = {"curious", "http_server"}
_NPM = _TOOLS / "npm" / "node_modules"


WARM = Path(os.environ.get("TOOLFOLD_TEST_WARM", "/nowhere"))
"""Where `tests/conftest.py` put the interpreter that has toolfold loaded."""


def python() -> str:
    """Return the interpreter to start toolfold with, unless its start or its end is the subject.

    `-m toolfold` is forked from a process that has loaded it, and so are the daemons it starts.
    """
    warm = WARM / "bin" / "python"
    return str(warm) if warm.exists() else sys.executable


def node_server(name: str, *arguments: str) -> list[str]:
    """Return the command of an npm server such as `memory`; skip the test where it is absent."""
    node = shutil.which("node")
    script = _NPM / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    if node is None:
        pytest.skip(f"The npm server {name!r} needs Node.js, which is not installed.")
    _skip_unless_there(script, f"The npm server {name!r}")
    return [node, str(script), *arguments]


def python_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a PyPI server: `git`, `time`, `fetch` or `sqlite`."""
    environment = "sqlite" if name == "sqlite" else "servers"
    script = _TOOLS / environment / "bin" / f"mcp-server-{name}"
    _skip_unless_there(script, f"The server {name!r}")
    return [str(script), *arguments]


def inspector(*arguments: str) -> list[str]:
    """Return the command of the official inspector, on the newer node that it needs."""
    node = _TOOLS / "node24" / "node"
    script = _NPM / ".bin" / "mcp-inspector"
    _skip_unless_there(node, "Node.js 24")
    _skip_unless_there(script, "The inspector")
    return [str(node), str(script.resolve()), *arguments]


def conformance(*arguments: str) -> list[str]:
    """Return the command of the official conformance suite, on the newer node that it needs."""
    node = _TOOLS / "node24" / "node"
    script = _NPM / ".bin" / "conformance"
    _skip_unless_there(node, "Node.js 24")
    _skip_unless_there(script, "The conformance suite")
    return [str(node), str(script.resolve()), *arguments]


CLAUDE_CODE_ENVIRON = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    # Its first question waits for its servers, however long they take to start.
    "MCP_CONNECTION_NONBLOCKING": "0",
    "MCP_CONNECT_TIMEOUT_MS": "90000",
    "MCP_TIMEOUT": "90000",
}
"""What the real Claude Code is started with."""


def claude_code(*arguments: str) -> list[str]:
    """Return the command of the real Claude Code; skip the test where it is absent."""
    package = _TOOLS / "claude" / "node_modules" / "@anthropic-ai" / "claude-code-linux-x64"
    _skip_unless_there(package / "claude", "Claude Code")
    return [str(package / "claude"), *arguments]


def catalogue(name: str) -> Path:
    """Return the file with the recorded tools of a real server; skip where it is absent."""
    path = SHARED_DATA / "catalogue" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"The recorded catalogue {path} is not on this machine.")
    return path


def test_server(name: str, *arguments: str | Path) -> dict[str, Any]:
    """Return an `mcpServers` entry that runs `tests/servers/<name>.py`."""
    script = ROOT / "tests" / "servers" / f"{name}.py"
    command = python() if name in _OF_THE_SDK or arguments[:1] == ("changes",) else sys.executable
    return {"command": command, "args": [str(script), *map(str, arguments)]}


# Its name would have pytest collect it in every module that imports it.
test_server.__test__ = False  # type: ignore[attr-defined]


def entry(command: list[str], **extra: Any) -> dict[str, Any]:
    """Return an `mcpServers` entry that runs `command`."""
    return {"command": command[0], "args": command[1:], **extra}


def write_config(path: Path, servers: dict[str, Any]) -> Path:
    """Write an `mcpServers` file and return its path."""
    path.write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    return path


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def examples(number: int) -> settings:
    """Ask for so many examples in `make soak`, and for some of them in `make test`."""
    is_long = settings.get_current_profile_name() == "long"
    return settings(max_examples=number if is_long else number // 8)


@contextmanager
def computing_at_most(cpu_s: float) -> Iterator[None]:
    """See that what is inside takes no more of the processor, however busy the machine is."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < cpu_s


def _skip_unless_there(path: Path, what: str) -> None:
    if not path.exists():
        pytest.skip(f"{what} is not installed; `make tools` installs it.")


MakeConfig = Callable[..., Config]
MakeApp = Callable[..., AbstractAsyncContextManager["Running"]]


class Running:
    """A running app with the one door that tests use most."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def run(self, code: str, **options: Any) -> RunReport:
        return await self.app.runtime.run(code, **options)


def scripted(path: Path, tools: list[dict[str, Any]], *arguments: str, **extra: Any) -> Any:
    """Write tools to a file; return an `mcpServers` entry of a server that has just these."""
    path.write_text(json.dumps(tools), encoding="utf-8")
    return {**test_server("scripted", path, *arguments), **extra}
