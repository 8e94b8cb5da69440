"""Measure the knowledge graph beside npm's server-memory: every operation, three sizes, one door.

Both are asked the same over stdio and take turns; the ratio is the median over the pairs. So is how
much the time grows with the graph: there a small and a large one of ours take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pairing import WORKERS
from report import machine
from stage import ROOT, Stage, Unavailable
from targets import limit

SIZES: Final = (50, 1_000, 10_000)
WARM_UPS: Final = 3
FILLED_AT_ONCE: Final = 1_000
LEAST_WRITE: Final = limit("graph-write")
LEAST_SEARCH: Final = limit("graph-search")
LEAST_READ: Final = limit("graph-read")
MAX_GROWTH: Final = limit("graph-growth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kind of call; the number of the turn makes each one different."""

    title: str
    tool: str
    arguments: Callable[[int, int], dict[str, Any]]
    """Of the size of the graph and the number of the turn."""
    least: float | None = None
    """How many times faster than the peer it must be in the largest graph."""
    is_flat: bool = False
    """Whether its time must not grow with the graph."""


def entity(number: int) -> dict[str, Any]:
    """Return one entity: a name, one of twenty types, three observations of a sentence each."""
    drinks = ("tea", "coffee", "water", "juice")
    return {
        "name": f"Person_{number:05d}",
        "entityType": f"kind-{number % 20:02d}",
        "observations": [
            f"Drinks {drinks[number % 4]} at {number % 24} o'clock, and would rather not be called "
            "by anybody for an hour after that",
            f"Was last seen in town {number * 7919 % 10_007}, on the way to the station, with a "
            "heavy bag and without an umbrella",
            f"Wrote report {number * 104_729 % 99_991} about the water of the harbour, signed it, "
            "and left it with the office at the gate",
        ],
    }


def relation(source: int, target: int, kind: str = "knows") -> dict[str, str]:
    """Return one relation."""
    names = (f"Person_{number:05d}" for number in (source, target))
    return dict(zip(("from", "to", "relationType"), (*names, kind), strict=True))


def _observed(key: str, turn: int) -> dict[str, Any]:
    return {"entityName": "Person_00007", key: [f"Said {turn} that it rains"]}


_FLAT_WRITE: Final[dict[str, Any]] = {"least": LEAST_WRITE, "is_flat": True}

OPERATIONS: Final = (
    Operation(
        title="create_entities, one",
        tool="create_entities",
        arguments=lambda size, turn: {"entities": [entity(size + turn)]},
        **_FLAT_WRITE,
    ),
    Operation(
        title="add_observations, one",
        tool="add_observations",
        arguments=lambda _, turn: {"observations": [_observed("contents", turn)]},
        **_FLAT_WRITE,
    ),
    Operation(
        title="create_relations, one",
        tool="create_relations",
        arguments=lambda size, turn: {"relations": [relation(7, turn, "met")]},
        **_FLAT_WRITE,
    ),
    Operation(
        title="open_nodes, one",
        tool="open_nodes",
        arguments=lambda size, turn: {"names": [f"Person_{turn % size:05d}"]},
        least=LEAST_SEARCH,
        is_flat=True,
    ),
    Operation(
        title="search_nodes, one result",
        tool="search_nodes",
        arguments=lambda size, turn: {"query": f"person_{(10 + turn) % size:05d}"},
        least=LEAST_SEARCH,
        is_flat=True,
    ),
    Operation(
        title="search_nodes, no result",
        tool="search_nodes",
        arguments=lambda _, turn: {"query": f"drinks nothing {turn}"},
        least=LEAST_SEARCH,
        is_flat=True,
    ),
    Operation(
        title="search_nodes, every twentieth",
        tool="search_nodes",
        arguments=lambda _, turn: {"query": f"KIND-{turn % 20:02d}"},
    ),
    Operation(
        title="read_graph",
        tool="read_graph",
        arguments=lambda _size, _turn: {},
        least=LEAST_READ,
    ),
    Operation(
        title="delete_relations, one",
        tool="delete_relations",
        arguments=lambda size, turn: {"relations": [relation(7, turn, "met")]},
        **_FLAT_WRITE,
    ),
    Operation(
        title="delete_observations, one",
        tool="delete_observations",
        arguments=lambda _, turn: {"deletions": [_observed("observations", turn)]},
        **_FLAT_WRITE,
    ),
    Operation(
        title="delete_entities, one",
        tool="delete_entities",
        arguments=lambda size, turn: {"entityNames": [f"Person_{size + turn:05d}"]},
        **_FLAT_WRITE,
    ),
)


class Side:
    """One server on the other end of a pipe."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], **env},
        )
        self._last = 0
        about = {"name": "bench", "version": "1"}
        said = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        self._ask("initialize", said)
        self._write({"method": "notifications/initialized"})

    def close(self) -> None:
        """End it as clients do."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(60)

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[float, Any]:
        """Return the seconds until the answer was there, and the answer.

        Raises:
            RuntimeError: The call failed.
        """
        taken, line = self._ask("tools/call", {"name": tool, "arguments": arguments})
        answer = json.loads(line)
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{tool} failed: {line[:500]!r}")
        return taken, answer["result"]["structuredContent"]

    def _ask(self, method: str, params: dict[str, Any]) -> tuple[float, bytes]:
        assert self._process.stdout is not None
        self._last += 1
        begun = time.perf_counter()
        self._write({"id": self._last, "method": method, "params": params})
        while line := self._process.stdout.readline():
            taken = time.perf_counter() - begun
            if json.loads(line).get("id") == self._last:
                return taken, line
        raise RuntimeError(f"The server ended before it answered {method}.")

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self._process.stdin.write(line)
        self._process.stdin.flush()


@contextmanager
def peer(directory: Path, stage: Stage) -> Iterator[Side]:
    """Run npm's server over a file of its own."""
    file = directory / "graph.jsonl"
    side = Side(stage.npm_server("memory"), {"MEMORY_FILE_PATH": str(file)})
    try:
        yield side
    finally:
        side.close()


@contextmanager
def ours(directory: Path, *, is_bare: bool) -> Iterator[Side]:
    """Run ours: as clients start it, through relay and daemon, or the graph behind a bare door."""
    command, env = [sys.executable, "-m", "toolfold"], {"TOOLFOLD_HOME": str(directory)}
    if is_bare:
        door = [sys.executable, str(WORKERS / "graph_service.py"), str(directory)]
    else:
        door = [*command, "mcp", "--tools", "graph", "--namespace", "bench"]
    side = Side(door, env)
    try:
        yield side
    finally:
        side.close()
        if not is_bare:
            stop = [*command, "stop", "--now"]
            env |= {"PATH": os.environ["PATH"]}
            subprocess.run(stop, env=env, check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True, slots=True)
class Found:
    """How long an operation took in a graph of one size, in seconds, and by pairs."""

    peer_s: float
    ours_s: float
    faster: float


def measure(size: int, arguments: argparse.Namespace) -> dict[str, Found]:
    """Fill both sides, and time every operation; the answers must be equal."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        home = Path(place)
        (home / "ours").mkdir()
        stage = Stage(arguments.tools, home)
        sides = (
            stack.enter_context(peer(home, stage)),
            stack.enter_context(ours(home / "ours", is_bare=arguments.bare)),
        )
        for side in sides:
            _fill(side, size)
        return {
            operation.title: _time(operation, size, sides, arguments.pairs)
            for operation in OPERATIONS
        }


def grow(arguments: argparse.Namespace) -> dict[str, float]:
    """Return by how much the time of every operation of ours grows from least to largest size."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        sides = {}
        for size in (min(arguments.sizes), max(arguments.sizes)):
            home = Path(place) / str(size)
            home.mkdir()
            sides[size] = stack.enter_context(ours(home, is_bare=arguments.bare))
            _fill(sides[size], size)
        return {each.title: _growth(each, sides, arguments.pairs) for each in OPERATIONS}


def _growth(operation: Operation, sides: dict[int, Side], pairs: int) -> float:
    turns = [
        [
            side.call(operation.tool, operation.arguments(size, turn))[0]
            for size, side in sides.items()
        ]
        for turn in range(WARM_UPS + pairs)
    ]
    return statistics.median(turn[-1] / turn[0] for turn in turns[WARM_UPS:])


def _fill(side: Side, size: int) -> None:
    for start in range(0, size, FILLED_AT_ONCE):
        some = range(start, min(start + FILLED_AT_ONCE, size))
        side.call("create_entities", {"entities": [entity(number) for number in some]})
        related = [relation(number, (number + 1) % size) for number in some]
        side.call("create_relations", {"relations": related})


def _time(operation: Operation, size: int, sides: tuple[Side, Side], pairs: int) -> Found:
    taken: list[list[float]] = []
    for turn in range(WARM_UPS + pairs):
        arguments = operation.arguments(size, turn)
        # Each goes first in every other pair.
        order = (0, 1) if turn % 2 else (1, 0)
        answers = {number: sides[number].call(operation.tool, arguments) for number in order}
        if answers[0][1] != answers[1][1]:
            raise RuntimeError(f"{operation.title}: the two sides answer differently")
        taken.append([answers[0][0], answers[1][0]])
    counted = taken[WARM_UPS:]
    return Found(
        statistics.median(theirs for theirs, _ in counted),
        statistics.median(own for _, own in counted),
        statistics.median(theirs / own for theirs, own in counted),
    )


def main() -> int:
    """Print the table; fail where less was found than promised."""
    arguments = _arguments()
    try:
        Stage(arguments.tools, ROOT).npm_server("memory")
    except Unavailable as reason:
        print(f"server-memory: skipped, {reason}")
        return 0
    door = "the graph behind a bare door" if arguments.bare else "toolfold mcp --tools graph"
    print(
        f"{door}, beside server-memory; {machine()['cores']} cores, {os.getloadavg()[0]:.1f} load"
    )
    found = {size: measure(size, arguments) for size in arguments.sizes}
    growth = grow(arguments)
    _print_table(found, growth)
    return _judge(found[max(found)], growth)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=21, metavar="N", help="default: 21")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="ENTITIES")
    parser.add_argument("--tools", default=ROOT / ".tools", type=Path, metavar="DIR")
    parser.add_argument("--bare", action="store_true", help="without relay, daemon and SDK")
    return parser.parse_args()


def _print_table(found: dict[int, dict[str, Found]], growth: dict[str, float]) -> None:
    sizes = "".join(f"{f'{size:,} entities':>28}" for size in found)
    print(f"\n{'':<32}{sizes}{'growth':>10}")
    print(f"{'ms: peer, ours, times faster':<32}")
    for operation in OPERATIONS:
        row = [found[size][operation.title] for size in found]
        cells = "".join(
            f"{each.peer_s * 1e3:>12.2f}{each.ours_s * 1e3:>8.2f}{each.faster:>7.1f}x"
            for each in row
        )
        print(f"{operation.title:<32}{cells}{growth[operation.title]:>9.2f}x")


def _judge(largest: dict[str, Found], growth: dict[str, float]) -> int:
    missed = []
    for operation in OPERATIONS:
        faster, grown = largest[operation.title].faster, growth[operation.title]
        if operation.least is not None and faster < operation.least:
            missed.append(f"{operation.title}: {faster:.1f} x, not {operation.least:.0f} x")
        if operation.is_flat and grown > MAX_GROWTH:
            missed.append(f"{operation.title}: grows {grown:.2f} x, at most {MAX_GROWTH:.0f} x")
    print("\n" + ("\n".join(missed) if missed else "all that is promised was found"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
