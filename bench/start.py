"""Measure how long clients wait for their first list of tools, and people for warm commands.

Every server is started as a client starts it and told the same three lines. They take turns, and
each time is compared with that of `python -c pass` in the same round.
"""

import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from targets import limit

from toolfold.relay.daemon import DaemonHandle

ROOT = Path(__file__).parents[1]
FASTMCP = ROOT / ".tools" / "fastmcp" / "bin" / "python"
ROUNDS = 25
PATIENCE_S = 60
MAX_COMMAND = 4.0
MAX_BARE = limit("start-bare")
LEAST_FASTMCP = limit("start-fastmcp")

SDK_SERVER = """
import anyio, mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
async def tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="add", input_schema={"type": "object"})])
server = Server("small", on_list_tools=tools)
async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""
FASTMCP_SERVER = """
from fastmcp import FastMCP
server = FastMCP("small")
@server.tool
def add(a: int, b: int) -> int:
    return a + b
server.run(show_banner=False)
"""
ABOUT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
LINES = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": ABOUT},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    )
).encode()

CALL = b"""\
{"jsonrpc":"2.0","id":3,"method":"tools/call",\
"params":{"name":"execute_code","arguments":{"code":"1"}}}
"""


@dataclass(frozen=True)
class Candidate:
    """Something to start, and what has to be so before each time."""

    title: str
    command: list[str]
    prepare: Callable[[], None] = lambda: None
    is_command: bool = False
    """Whether it ends by itself: then it is measured to its end."""


def main() -> int:
    """Print the table; fail where a ratio is worse than promised."""
    with tempfile.TemporaryDirectory() as home:
        world = _World(Path(home))
        try:
            times = _take_turns(_candidates(world), world.environ)
        finally:
            world.stop_daemon()
    bare = times["python -c pass"]
    print(f"{'process start to first tools/list answer, or end':<50}{'ms':>9}{'x bare':>9}")
    ratios = {}
    for title, taken in times.items():
        ratios[title] = statistics.median(t / b for t, b in zip(taken, bare, strict=False))
        print(f"{title:<50}{statistics.median(taken) * 1000:>9.1f}{ratios[title]:>9.2f}")
    return _judge(ratios)


def _judge(ratios: dict[str, float]) -> int:
    failed = 0
    for title in (RELAY_WARM, RELAY_COLD):
        if ratios[title] > MAX_BARE:
            print(f"{title}: {ratios[title]:.2f} x bare python, more than {MAX_BARE}")
            failed = 1
        if "FastMCP" in ratios:
            faster = ratios["FastMCP"] / ratios[title]
            print(f"{title}: {faster:.0f} x faster than FastMCP (at least {LEAST_FASTMCP:.0f})")
            failed |= faster < LEAST_FASTMCP
    for words in COMMANDS:
        if ratios[_title(words)] > MAX_COMMAND:
            print(f"{_title(words)}: {ratios[_title(words)]:.2f} x bare, more than {MAX_COMMAND}")
            failed = 1
    return failed


RELAY_WARM = "toolfold mcp, the daemon is warm"
RELAY_COLD = "toolfold mcp, there is no daemon"
COMMANDS = (("run", "-c", "1"), ("memory", "search", "x"), ("tools", "search", "x"))


def _title(words: tuple[str, ...]) -> str:
    return f"toolfold {' '.join(words)}, the daemon is warm"


class _World:
    """A user of toolfold with one server configured, and a manifest from an earlier start."""

    def __init__(self, home: Path) -> None:
        self.environ = {
            **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
            "TOOLFOLD_HOME": str(home),
        }
        self._command = [sys.executable, "-m", "toolfold"]
        (home / "config").mkdir()
        server = ROOT / "tests" / "servers" / "world.py"
        entry = {"command": sys.executable, "args": [str(server)]}
        (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"world": entry}}))
        self._manifests = home / "cache" / "manifests"

    def start_daemon(self) -> None:
        if DaemonHandle(self.environ).connect() is None:
            command, call = [*self._command, "mcp"], LINES + CALL
            _first_answer(command, self.environ, said=call, until=b'"id":3')
            _wait_for(lambda: DaemonHandle(self.environ).connect() is not None)
            _wait_for(lambda: any(self._manifests.glob("*.json")))

    def warm(self, command: list[str]) -> None:
        """Have a daemon that has done this before."""
        self.start_daemon()
        subprocess.run(command, env=self.environ, check=True, stdout=subprocess.DEVNULL)

    def stop_daemon(self) -> None:
        command = [*self._command, "stop", "--now"]
        subprocess.run(command, env=self.environ, check=True, stdout=subprocess.DEVNULL)


def _candidates(world: _World) -> list[Candidate]:
    relay = [sys.executable, "-m", "toolfold", "mcp"]
    found = [
        Candidate("python -c pass", [sys.executable, "-c", "pass"], is_command=True),
        Candidate(RELAY_WARM, relay, world.start_daemon),
        *(_command(world, words) for words in COMMANDS),
        Candidate(RELAY_COLD, relay, world.stop_daemon),
        Candidate("a minimal server on the official SDK", [sys.executable, "-c", SDK_SERVER]),
    ]
    if FASTMCP.exists():
        found.append(Candidate("FastMCP", [str(FASTMCP), "-c", FASTMCP_SERVER]))
    else:
        print("FastMCP is not installed; `make bench` installs it.")
    return found


def _command(world: _World, words: tuple[str, ...]) -> Candidate:
    command = [sys.executable, "-m", "toolfold", *words]
    return Candidate(_title(words), command, lambda: world.warm(command), is_command=True)


def _whole_time(command: list[str], environ: dict[str, str]) -> float:
    """Return the seconds from the start of a process to its end."""
    started = time.perf_counter()
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _take_turns(candidates: list[Candidate], environ: dict[str, str]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {candidate.title: [] for candidate in candidates}
    for turn in range(ROUNDS + 1):
        for candidate in candidates:
            if candidate.title == "FastMCP" and turn > 5:
                continue  # it takes seconds, and its ratio is far from any limit
            candidate.prepare()
            measure = _whole_time if candidate.is_command else _first_answer
            taken = measure(candidate.command, environ)
            if turn:  # the first round warms the caches of the file system
                times[candidate.title].append(taken)
    return times


def _first_answer(
    command: list[str], environ: dict[str, str], *, said: bytes = LINES, until: bytes = b'"id":2'
) -> float:
    """Return the seconds from the start of a process to its answer, by default `tools/list`."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(said)
    process.stdin.flush()
    received = b""
    while until not in received.replace(b" ", b"") or not received.endswith(b"\n"):
        if not select.select([process.stdout], [], [], PATIENCE_S)[0]:
            raise TimeoutError(f"{command} does not answer")
        chunk = os.read(process.stdout.fileno(), 65_536)
        if not chunk:
            raise EOFError(f"{command} ended")
        received += chunk
    taken = time.perf_counter() - started
    process.stdin.close()
    process.wait(PATIENCE_S)
    process.stdout.close()
    return taken


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
