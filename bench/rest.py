"""Load the REST door: many requests at once, round after round, while memory is watched."""

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from targets import limit
from tokens import CATALOGUE

ROOT = Path(__file__).parents[1]
SEVEN = ("github", "slack", "notion", "salesforce", "google-workspace", "atlassian", "playwright")
MAX_GROWTH = limit("rest-growth")
"""Of memory in the second half of the rounds; in the first, threads and caches fill."""


def request(method: str, path: str, body: object = None) -> bytes:
    """Write a request as it goes over the wire."""
    content = b"" if body is None else json.dumps(body).encode()
    kind = "Content-Type: application/json\r\n" if content else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost:PORT\r\n{kind}"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


LIST = {"arguments": {"owner": "acme", "repo": "shop"}}
MIX = {
    "discover": (4, request("GET", "/tools/discover")),
    "search tools": (2, request("GET", "/tools/list?query=open+an+issue&limit=5")),
    "describe a tool": (3, request("GET", "/tools/github.create_issue")),
    "call a tool": (2, request("POST", "/tools/github.list_issues/execute", LIST)),
    "search notes": (4, request("GET", "/memory/search?query=port+of+staging")),
    "store a note": (2, request("POST", "/memory/notes", {"content": "Staging: port 5433"})),
    "run code": (1, request("POST", "/execute", {"code": "sum(range(1000))"})),
    "health": (2, request("GET", "/health")),
}


def main() -> int:
    """Print what every round took; fail if a request did, or if memory grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--concurrency", type=int, default=50)
    options = parser.parse_args()
    if not CATALOGUE.is_dir():
        print("rest: skipped, the recorded catalogues are not on this machine")
        return 0
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as (port, pid):
        return asyncio.run(measure(port, pid, options))


@contextmanager
def serving(home: Path) -> Iterator[tuple[int, int]]:
    """Run `toolfold serve` over the seven catalogues; give its port and its process."""
    replay = str(ROOT / "tests" / "servers" / "replay.py")
    servers = {
        name: {"command": sys.executable, "args": [replay, str(CATALOGUE / f"{name}.json")]}
        for name in SEVEN
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    command = [sys.executable, "-m", "toolfold", "serve", "--port", "0"]
    command += ["--config", str(home / "mcp.json"), "--set", "connect_timeout_s=120"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TOOLFOLD_HOME": str(home / "home")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        try:
            found = re.search(r":(\d+)/mcp", process.stdout.readline())
            assert found is not None, "toolfold did not start"
            yield int(found[1]), process.pid
        finally:
            process.terminate()


class Peer:
    """One connection, kept open."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, raw: bytes) -> tuple[int, bytes]:
        self._writer.write(raw.replace(b"PORT", str(self._port).encode(), 1))
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        return int(head.split()[1]), await self._reader.readexactly(size)


async def measure(port: int, pid: int, options: argparse.Namespace) -> int:
    await until_known(port)
    print(f"{options.requests} requests, {options.concurrency} at a time, seven servers, 504 tools")
    resident: list[float] = []
    faults = 0
    by_kind: dict[str, list[float]] = defaultdict(list)
    for number in range(1, options.rounds + 1):
        began = time.perf_counter()
        times, failed = await one_round(port, options)
        taken = time.perf_counter() - began
        faults += sum(failed.values())
        resident.append(resident_mb(pid))
        every = sorted(each for kind in times.values() for each in kind)
        for kind, measured in times.items():
            by_kind[kind] += measured
        print(
            f"round {number:>2}: {sum(failed.values())} errors {dict(failed) or ''}  "
            f"{len(every) / taken:6.0f}/s  p50 {at(every, 50):6.1f} ms  p99 {at(every, 99):6.1f} ms"
            f"  max {every[-1]:6.1f} ms  memory {resident[-1]:.0f} MB"
        )
    for kind, measured in sorted(by_kind.items()):
        shown = sorted(measured)
        print(f"  {kind:<16} p50 {at(shown, 50):6.1f} ms  p99 {at(shown, 99):6.1f} ms")
    half = (len(resident) - 1) // 2
    growth = resident[-1] / resident[half]
    print(f"memory at the end: {growth:.3f} of that after round {half + 1} (at most {MAX_GROWTH})")
    return 0 if not faults and growth <= MAX_GROWTH else 1


async def one_round(
    port: int, options: argparse.Namespace
) -> tuple[dict[str, list[float]], Counter[str]]:
    """Send the requests of one round; return milliseconds by kind, and what failed."""
    names = random.Random(7).choices(
        list(MIX), [weight for weight, _ in MIX.values()], k=options.requests
    )
    waiting = iter(names)
    times: dict[str, list[float]] = defaultdict(list)
    failed: Counter[str] = Counter()

    async def work() -> None:
        peer = Peer(port)
        await peer.open()
        for name in waiting:
            began = time.perf_counter()
            status, _ = await peer.ask(MIX[name][1])
            times[name].append((time.perf_counter() - began) * 1000)
            if status >= 300:
                failed[f"{name}: {status}"] += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(options.concurrency):
            tasks.create_task(work())
    return times, failed


async def until_known(port: int) -> None:
    """Wait until all seven servers have said what they have."""
    peer = Peer(port)
    await peer.open()
    while json.loads((await peer.ask(MIX["discover"][1]))[1])["total_tools"] < 504:
        pass


def at(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def resident_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    sys.exit(main())
