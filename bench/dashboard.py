"""Measure every page of the dashboard over 100,000 runs and 100,000 notes; fail where it is slow.

Server time is what a request takes over loopback. Memory and descriptors are those of the process
that serves the pages, while pages are seen and watched and their watchers vanish.
"""

import argparse
import http.client
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memory_ours import RandomEmbedder, daemon_pid, end, environ, fill, memory_mb
from stage import ROOT
from targets import limit

from toolfold.journal.audit.chain import AUDITED
from toolfold.journal.runsdb import SCHEMA
from toolfold.storage.sqlite_file import open_for_writing

SIZE = 100_000
DAYS = 25
CLIENTS = ("claude-code", "cursor", "cli", "rest", "mcp-3")
TOOLS = ("github.list_issues", "github.create_issue", "crm.find", "crm.update", "files.read")
MAX_P95_MS = limit("dashboard-p95-ms")
MAX_PAINT_MS = limit("dashboard-paint-ms")
MAX_GROWTH = limit("dashboard-growth")
CHROMIUM = ROOT / ".tools" / "browser" / "chromium"
_BEGIN = """
    INSERT INTO beginnings (id, began_at, client, request, project, process, kind, code, code_bytes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
MENU = (
    *("/ui/", "/ui/approvals", "/ui/runs", "/ui/tools", "/ui/savings", "/ui/memory"),
    *("/ui/sessions", "/ui/policy", "/ui/settings"),
)
PAGES = (
    "/ui/",
    "/ui/approvals",
    "/ui/runs",
    "/ui/runs?text=refund+42",
    "/ui/runs?tool=crm.update",
    "/ui/runs?outcome=failed&days=7",
    "/ui/runs?client=cursor&tool=files",
    "RUN",
    "RUN/recording",
    "/ui/tools",
    "/ui/tools?query=find+issues",
    "/ui/savings",
    "/ui/savings?days=365",
    "/ui/memory",
    "/ui/memory?query=why+the+billing+was+postponed",
    "/ui/memory?tags=bench",
    "/ui/memory?after=2024-01-01&before=2024-02-01",
    "NOTE",
    "/ui/memory/graph",
    "/ui/memory/graph/data",
    "/ui/memory/consolidation",
    "/ui/memory/documents",
    "/ui/memory/transfer",
    "/ui/sessions",
    "/ui/policy",
    "/ui/settings",
)


def fill_runs(path: Path, count: int) -> None:
    """Write so many runs with three calls each into a journal, as time spreads them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    choose, now = random.Random("runs"), time.time()
    with closing(open_for_writing(path, SCHEMA).connection) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for kind in AUDITED:  # rows without entries in the audit log are refused
            connection.execute(f"DROP TRIGGER audit_{kind}")
        for number in range(1, count + 1):
            at = now - DAYS * 86_400 * (1 - number / count)
            code = (
                f"import github, crm\n# the refund {number} of order {choose.randrange(10**6)}\n"
                "rows = [crm.find(id=issue['id']) for issue in github.list_issues(repo='shop')]\n"
                "print(len(rows), sum(row['amount'] for row in rows if row['open']))\n"
            )
            reply = f"{choose.randrange(10**6)} rows\n" * 8
            client, project = choose.choice(CLIENTS), f"/home/ada/project-{number % 7}"
            begun = (f"{int(at):08x}{number:08x}", at, client, "", project, 1, "code")
            connection.execute(_BEGIN, (*begun, code, len(code)))
            for position in range(1, 4):
                key = (number << 32) + position
                answer = json.dumps([{"id": n, "amount": n * 7, "open": True} for n in range(8)])
                outcome = "failed" if choose.random() < 0.01 else "ok"
                connection.execute(
                    "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (key, choose.choice(TOOLS), outcome, '{"id":7}', 8, None, answer, len(answer),
                     None, None, at, choose.random()),
                )  # fmt: skip
            failure = "error" if choose.random() < 0.02 else None
            if number % 5_000:  # the others were lost with their process
                connection.execute(
                    "INSERT INTO ends VALUES (?, ?, ?, ?, ?, ?)",
                    (number, at + 2 * choose.random(), failure, reply, len(reply), None),
                )
        connection.execute("COMMIT")


class Visitor:
    """One connection to the dashboard, with a session."""

    def __init__(self, port: int, ticket: str) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self._headers: dict[str, str] = {}
        cookie = self._ask(f"/ui/open?ticket={ticket}").getheader("set-cookie", "")
        self._headers = {"cookie": cookie.partition(";")[0]}

    def _ask(self, path: str) -> http.client.HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        self.text = response.read().decode()
        return response

    def see(self, path: str) -> float:
        """Open a page; return how long that took, in milliseconds."""
        began = time.perf_counter()
        response = self._ask(path)
        assert response.status == 200, (path, response.status, self.text)
        return (time.perf_counter() - began) * 1e3

    def watch(self) -> socket.socket:
        """Return a connection that is told of changes, after it was told something."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        host = f"127.0.0.1:{self.port}"
        head = f"GET /ui/live HTTP/1.1\r\nHost: {host}\r\nCookie: {self._headers['cookie']}\r\n\r\n"
        connection.sendall(head.encode())
        said = b""
        while b"retry" not in said:
            said += connection.recv(4096)
        return connection

    def paint(self, paths: list[str]) -> dict[str, float]:
        """Return when a browser first shows something of each page, in milliseconds."""
        from playwright.sync_api import sync_playwright

        name, _, value = self._headers["cookie"].partition("=")
        url = f"http://127.0.0.1:{self.port}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=str(CHROMIUM),
                args=["--no-sandbox", "--headless=shell", "--disable-gpu"],
            )
            context = browser.new_context()
            context.add_cookies([{"name": name, "value": value, "url": f"{url}/ui/"}])
            page = context.new_page()
            page.goto(f"{url}/ui/settings")  # styles and scripts are fetched once
            found = {}
            for path in paths:
                page.goto(url + path)
                while (painted := page.evaluate(_PAINTED)) is None:
                    page.wait_for_timeout(50)
                found[path] = painted
            browser.close()
        return found


_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


@contextmanager
def dashboard(home: Path) -> Iterator[Visitor]:
    """Run `toolfold ui` over a home; its daemon ends with it."""
    project = home / "shop"
    project.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "toolfold", "ui", "--no-browser"]
    with subprocess.Popen(
        command, env=environ(home), cwd=project, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            found = re.search(r":(\d+)/ui/open\?ticket=(\S+)", process.stdout.readline())
            assert found is not None, "the dashboard did not start"
            yield Visitor(int(found[1]), found[2])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            end(home)


def home_of(size: int, kept: Path, directory: Path) -> Path:
    """Return a fresh copy of a home with so many runs and notes; it is made once."""
    place = kept / str(size)
    if not place.is_dir():
        print(f"writing {size:,} runs and notes, once", flush=True)
        partial = kept / f"{size}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        fill(partial, size, RandomEmbedder())
        fill_runs(partial / "data" / "runs.db", size)
        partial.rename(place)
    return Path(shutil.copytree(place, directory / str(size)))


@dataclass
class Found:
    """What was measured, and what of it is too high."""

    faults: list[str] = field(default_factory=list)

    def note(self, words: str, value: float, most: float | None, unit: str) -> None:
        """Print a figure, and mark it if it is more than it may be."""
        is_fine = most is None or value <= most
        print(
            f"  {words:<58}{value:>9.2f} {unit}{'' if is_fine else f'  at most {most:g} !'}",
            flush=True,
        )
        if not is_fine:
            self.faults.append(words)


def main() -> int:
    """Print the figures; return 1 if one of them is too high."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help=f"runs and notes: {SIZE:,}")
    parser.add_argument("--turns", type=int, default=40, help="views of each page that are timed")
    parser.add_argument("--views", type=int, default=1_000, help="views while memory is watched")
    parser.add_argument("--kept", type=Path, default=ROOT / ".tools" / "dashboard-scale")
    parser.add_argument("--untimed", action="store_true", help="hold nothing to times")
    options = parser.parse_args()
    found = Found()
    print(f"{options.size:,} runs, {options.size:,} notes; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory:
        home = home_of(options.size, options.kept, Path(directory))
        with dashboard(home) as visitor:
            measure(found, visitor, daemon_pid(home), options)
    faults = found.faults
    print(f"\nToo high: {', '.join(faults)}" if faults else "\nEverything is as it must be.")
    return 1 if faults else 0


def measure(found: Found, visitor: Visitor, daemon: int, options: argparse.Namespace) -> None:
    paths, most = pages_of(visitor), None if options.untimed else MAX_P95_MS
    for path in paths:
        spent = cpu_ms(daemon)
        times = sorted(visitor.see(path) for _ in range(options.turns))
        spent = (cpu_ms(daemon) - spent) / options.turns
        p95 = times[math.ceil(0.95 * len(times)) - 1]
        found.note(path, p95, most, f"ms p95, {spent:4.0f} ms of processor time")
    if CHROMIUM.exists() and not options.untimed:
        for path, painted in visitor.paint([*MENU]).items():
            found.note(f"first paint of {path}", painted, MAX_PAINT_MS, "ms")
    sizes = [seen_size(visitor, paths, options.views // 4, daemon) for _ in range(4)]
    found.note(f"memory after {options.views} views", sizes[-1], None, "MB")
    found.note("of that after the first quarter", sizes[-1] / sizes[0], MAX_GROWTH, "x")
    found.note("descriptors left by 100 watchers", left_by_watchers(visitor, daemon), 0, "")


def pages_of(visitor: Visitor) -> list[str]:
    """Return the addresses of all pages, with a run and a note that are there."""
    found = {}
    for name, listing, address in (
        ("RUN", "/ui/runs?outcome=ok", r"/ui/runs/\w{16}"),
        ("NOTE", "/ui/memory", r"/ui/memory/notes/\w+"),
    ):
        visitor.see(listing)
        match = re.search(address, visitor.text)
        assert match is not None, listing
        found[name] = match[0]
    visitor.see("/ui/savings")
    while "data-reload" in visitor.text:  # the ledger is being added up
        time.sleep(0.5)
        visitor.see("/ui/savings")
    return [path.replace("RUN", found["RUN"]).replace("NOTE", found["NOTE"]) for path in PAGES]


def seen_size(visitor: Visitor, paths: list[str], views: int, daemon: int) -> float:
    """Open so many pages; return how much memory the daemon has then, in MB."""
    for number in range(views):
        visitor.see(paths[number % len(paths)])
    return memory_mb(daemon)


def cpu_ms(pid: int) -> float:
    """Return how much processor time a process has taken: what others do does not stretch it."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") * 1e3


def left_by_watchers(visitor: Visitor, daemon: int) -> int:
    """Have a hundred pages watch and vanish; return how many descriptors that leaves."""
    descriptors = Path(f"/proc/{daemon}/fd")
    visitor.watch().close()
    before = len([*descriptors.iterdir()])
    for connection in [visitor.watch() for _ in range(100)]:
        # Vanish, as a machine does that is switched off: with a reset and without a goodbye.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    patience = time.monotonic() + 60
    while (left := len([*descriptors.iterdir()]) - before) > 0 and time.monotonic() < patience:
        time.sleep(0.1)
    return max(0, left)


if __name__ == "__main__":
    sys.exit(main())
