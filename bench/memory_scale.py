"""Measure memory through the daemon at 1,000 to 100,000 notes; fail where it is not as promised.

Vectors are random: what they are does not change how long anything takes.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory_ours import (
    RandomEmbedder,
    daemon_at,
    daemon_pid,
    database,
    end,
    environ,
    fill,
    memory_mb,
    ours,
    seconds_of,
)
from pairing import Part, worker
from stage import ROOT
from targets import limit

SIZES = (1_000, 10_000, 100_000)
WORKS = ("search", "store", "health")
MAX_MS = {
    10_000: {"search": 10.0, "store": 20.0, "health": 5.0},
    100_000: {"search": 30.0},
}
MAX_GROWTH = limit("memory-growth")
MAX_ADDED_MB = limit("memory-added-mb")
MAX_DAEMON_MB = {100_000: 400.0}
MAX_OPENING_MS = limit("memory-opening-ms")
MAX_START = limit("memory-start")
STARTS = 9
WARM_UPS = 5

ADDED = """
import os
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
before = resident()
from toolfold import api
for query in ("garden in Lisbon", "who prefers the piano", "what must not touch the cache"):
    assert api.search(query).memories
api.health()
print(resident() - before)
"""

# In a process of its own, after its imports: what is measured is the store.
OPENING = """
import sys, time
from pathlib import Path
import anyio, anyio.to_thread
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.ranking.rank import WORDS
from toolfold.memory.store import EVERYTHING, Query
async def main():
    await anyio.to_thread.run_sync(len, "")  # the first thread costs its own time
    begun = time.perf_counter()
    file = SqliteFile(Path(sys.argv[1]))
    store = SqliteStore(file)
    async with file.running(), store.running():
        query = Query(text="the garden in Lisbon", vector=None, wanted=EVERYTHING)
        matches = await store.search("bench", query, depth=5)
        notes = await store.load("bench", [key for key, _ in matches.lists[WORDS]])
        spent = time.perf_counter() - begun
    assert len(notes) == 5
    print(spent * 1e3)
anyio.run(main)
"""

HEALTH = "from toolfold import api; api.health()"


@dataclass
class Found:
    """What was measured, and what of it is not as it must be."""

    faults: list[str]

    def note(self, words: str, value: float, most: float | None, unit: str) -> None:
        """Print a figure, and mark it if it is more than it may be."""
        is_fine = most is None or value <= most
        limit = "" if most is None else f"   at most {most:g} {unit}{'' if is_fine else '  !'}"
        print(f"  {words:<42}{value:>9.2f} {unit}{limit}", flush=True)
        if not is_fine:
            self.faults.append(f"{words}: {value:.2f} {unit}, and {most:g} is the limit.")


def main() -> int:
    """Print the figures; return 1 if one of them is too high."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="NOTES")
    parser.add_argument("--turns", type=int, default=101, metavar="N", help="default: 101")
    parser.add_argument("--kept", type=Path, default=ROOT / ".tools" / "memory-scale")
    arguments = parser.parse_args()
    found = Found([])
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory, ExitStack() as daemons:
        homes = {size: _home(size, arguments.kept, Path(directory)) for size in arguments.sizes}
        for size, home in homes.items():
            _print_opening(found, size, home)
        for home in homes.values():
            daemons.enter_context(daemon_at(home))
        _print_times(found, homes, arguments.turns)
        for size, home in homes.items():
            _print_memory(found, size, home)
    _print_start(found)
    print("\n".join(["", *found.faults]) if found.faults else "\nEverything is as it must be.")
    return 1 if found.faults else 0


def _home(size: int, kept: Path, directory: Path) -> Path:
    """Return a fresh copy of a memory with so many notes; it is made once."""
    place = kept / str(size)
    if not place.is_dir():
        print(f"storing {size:,} notes, once", flush=True)
        partial = kept / f"{size}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        fill(partial, size, RandomEmbedder())
        partial.rename(place)
    return Path(shutil.copytree(place, directory / str(size)))


def _print_opening(found: Found, size: int, home: Path) -> None:
    times = [float(_output(OPENING, home, str(database(home)))) for _ in range(5)]
    words = f"open and a first search by words, {size:,}"
    found.note(words, statistics.median(times), MAX_OPENING_MS, "ms")


def _print_times(found: Found, homes: dict[int, Path], turns: int) -> None:
    """Print the middle time of each verb at each size."""
    for work in WORKS:
        rounds = _rounds(work, homes, turns)
        for size, times in rounds.items():
            most = MAX_MS.get(size, {}).get(work)
            found.note(f"{work}, {size:,}", statistics.median(times) * 1e3, most, "ms")
            print(f"  {'  the least of them':<42}{min(times) * 1e3:>9.2f} ms")
        if work == "store" and len(homes) > 1:
            least, most = min(homes), max(homes)
            pairs = zip(rounds[most], rounds[least], strict=True)
            growth = statistics.median(large / small for large, small in pairs)
            found.note(f"store at {most:,} over {least:,}", growth, MAX_GROWTH, "x")


def _rounds(work: str, homes: dict[int, Path], turns: int) -> dict[int, list[float]]:
    """Return the times of each size. Sizes take turns where they are compared with each other.

    Elsewhere they do not: three daemons would push each other out of the processor's caches.
    """
    if work != "store":
        return {size: _times(work, {size: home}, turns)[size] for size, home in homes.items()}
    return _times(work, homes, turns)


def _times(work: str, homes: dict[int, Path], turns: int) -> dict[int, list[float]]:
    with _workers(work, homes) as timers:
        rounds = [
            {size: time_one() for size, time_one in timers.items()} for _ in range(turns + WARM_UPS)
        ]
    return {size: [each[size] for each in rounds[WARM_UPS:]] for size in homes}


@contextmanager
def _workers(work: str, homes: dict[int, Path]) -> Iterator[dict[int, Callable[[], float]]]:
    side = ours()
    with ExitStack() as running:
        parts: dict[int, Part] = {size: side.warm(work, home) for size, home in homes.items()}
        yield {size: running.enter_context(worker(part)) for size, part in parts.items()}


def _print_memory(found: Found, size: int, home: Path) -> None:
    added = statistics.median(float(_output(ADDED, home)) for _ in range(3))
    found.note(f"memory added to a script, {size:,}", added, MAX_ADDED_MB, "MB")
    daemon = memory_mb(daemon_pid(home))
    found.note(f"memory of the daemon, {size:,}", daemon, MAX_DAEMON_MB.get(size), "MB")


def _print_start(found: Found) -> None:
    """Print how long the first answer of a daemon takes that must be started, over `import mcp`."""
    ratios, times = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as directory:
            home = Path(directory)
            imported = seconds_of([sys.executable, "-c", "import mcp"], home)
            times.append(seconds_of([sys.executable, "-c", HEALTH], home))
            ratios.append(times[-1] / imported)
            end(home)
    found.note("start of a daemon, to its first answer", statistics.median(times), None, "s")
    found.note("start of a daemon over `import mcp`", statistics.median(ratios), MAX_START, "x")


def _output(code: str, home: Path, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, env=environ(home), cwd=home, capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
