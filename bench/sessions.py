"""Measure sessions: what it costs to have variables that last.

A run in a session reads its state from disk, restores it, and writes it again before it answers.
It is measured beside a run that keeps nothing, in the same process and in turns, with a small state
and with one of about a megabyte. Then a hundred sessions are left alone: what they take on disk and
in memory; and a few CPython sessions, whose processes wait.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
from targets import limit

from toolfold.app import App, running_app
from toolfold.config.config import load_config
from toolfold.execution.runtime import FRESH, SessionRequest

MAX_SMALL: Final = limit("session-small")
SESSIONS: Final = 100
PARKED: Final = 4

SMALL: Final = "import json\nx = 1\nrows = [{'id': n} for n in range(20)]\ndef f(n):\n    return n"
LARGE: Final = "x = 1\nrows = [{'id': n, 'name': f'name {n}'} for n in range(10_000)]"


def main() -> int:
    """Print the table; fail where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=61)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return anyio.run(measure, Path(directory), arguments.rounds)


async def measure(directory: Path, rounds: int) -> int:
    """Run all of it in one app."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "TOOLFOLD_HOME": str(directory)}
    config = load_config(cwd=directory, environ=environ)
    async with running_app(config) as app:
        small, large = SessionRequest("small"), SessionRequest("large")
        await run(app, SMALL, small)
        await run(app, LARGE, large)
        times = await in_turns(
            rounds,
            {
                "fresh": lambda: run(app, "1 + 1", FRESH),
                "session": lambda: run(app, "x + 1", small),
                "large": lambda: run(app, "x + 1", large),
            },
        )
        fresh = times["fresh"]
        print(f"{'a run that keeps nothing':<44} {statistics.median(fresh) * 1000:7.2f} ms")
        ratios = {name: paired(times[name], fresh) for name in ("session", "large")}
        for name, words in (("session", "in a session"), ("large", "in a session of 10,000 rows")):
            size = app.sessions.show("small" if name == "session" else name).size_bytes
            print(
                f"{words + f', {size / 1024:,.0f} KB':<44} "
                f"{statistics.median(times[name]) * 1000:7.2f} ms  {ratios[name]:5.2f} x"
            )
        await park_many(app, directory)
        await park_processes(app)
    is_kept = ratios["session"] <= MAX_SMALL
    print(f"{'kept' if is_kept else 'NOT KEPT'}: at most {MAX_SMALL} x for a small session")
    return 0 if is_kept else 1


async def run(app: App, code: str, session: SessionRequest) -> None:
    """Run code that must work."""
    result = await app.runtime.run(code, session=session)
    assert result.success, result.text


async def in_turns(
    rounds: int, jobs: dict[str, Callable[[], Awaitable[None]]]
) -> dict[str, list[float]]:
    """Time each job once a round, after a first round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            started = time.perf_counter()
            await job()
            if number:
                times[name].append(time.perf_counter() - started)
    return times


def paired(ours: list[float], floor: list[float]) -> float:
    """Return the median of the ratios, each within its round."""
    return statistics.median(a / b for a, b in zip(ours, floor, strict=True))


async def park_many(app: App, directory: Path) -> None:
    """Leave a hundred sessions, and say what they take."""
    before = resident_mb(os.getpid())
    for number in range(SESSIONS):
        await run(app, SMALL, SessionRequest(f"s{number}"))
    grown = resident_mb(os.getpid()) - before
    files = list((directory / "data" / "sessions").rglob("s[0-9]*.session"))
    size = sum(file.stat().st_size for file in files)
    print(
        f"{len(files)} sessions: {size / len(files) / 1024:.1f} KB each on disk; "
        f"this process grew by {grown:.1f} MB"
    )


async def park_processes(app: App) -> None:
    """Leave a few CPython sessions, and say what each process has of its own."""
    works, why = await app.tiers.examine()
    if not works:
        print(f"CPython sessions: not here ({why})")
        return
    for number in range(PARKED):
        await run(app, "import enum\nx = [1] * 1000", SessionRequest(f"c{number}"))
    own = [private_mb(pid) for pid in stopped_processes()]
    print(f"{len(own)} CPython sessions: {statistics.mean(own):.1f} MB each that nobody shares")


def resident_mb(process: int) -> float:
    """Return the memory that a process has, shared or not."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4 / 1024


def private_mb(process: int) -> float:
    """Return the memory that a process shares with no other."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def stopped_processes() -> list[int]:
    """Return the processes that stand still: those of parked sessions, if nobody else stops any."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state = path.read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "T":
            found.append(int(path.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
