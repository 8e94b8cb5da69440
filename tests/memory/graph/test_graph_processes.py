"""Where the real server loses what it acknowledged: many processes, many calls at once, death."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from graphs import related, running_graph, told

from toolfold.memory.graph.service import Graph
from toolfold.memory.graph.tools import call

SCRIPT = Path(__file__).with_name("graph_writer_process.py")
DEADLINE_S = 60


def start(directory: Path, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, SCRIPT, directory, name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(directory)},
    )


async def check(directory: Path, names: list[str]) -> int:
    """All these entities are there and found in every way; return how many there are."""
    async with running_graph(directory) as graph:
        kept = [each["name"] for each in (await graph.read_graph())["entities"]]
        assert set(names) <= set(kept)
        assert len(kept) == len(set(kept))
        for name in (names[0], names[-1]):
            for found in (await graph.open_nodes([name]), await graph.search_nodes(name)):
                assert name in [each["name"] for each in found["entities"]]
            assert (await graph.search_graph(name)).entities[0].name == name
    with closing(sqlite3.connect(directory / "memory.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return len(kept)


@pytest.mark.parametrize(("processes", "count"), [(2, 50), (4, 25)])
async def test_processes_that_write_at_once_lose_nothing(
    tmp_path: Path, processes: int, count: int
) -> None:
    writers = [start(tmp_path, f"writer{number}x", count) for number in range(processes)]
    names = []
    for writer in writers:
        output, _ = writer.communicate(timeout=DEADLINE_S)
        assert writer.returncode == 0
        names += output.split()

    assert len(set(names)) == processes * count
    assert await check(tmp_path, names) == processes * count


async def test_fifty_calls_at_once_lose_nothing(graph: Graph) -> None:
    await graph.create_entities([told("hub")])

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(call, graph, "create_entities", {"entities": [told(f"n{number}")]})
            addition = {"entityName": "hub", "contents": [f"fact {number}"]}
            tasks.start_soon(call, graph, "add_observations", {"observations": [addition]})
            relations = [related("hub", "has", f"n{number}")]
            tasks.start_soon(call, graph, "create_relations", {"relations": relations})

    found = await graph.read_graph()
    [hub, *others] = found["entities"]
    assert {each["name"] for each in others} == {f"n{number}" for number in range(50)}
    assert set(hub["observations"]) == {f"fact {number}" for number in range(50)}
    assert len(found["relations"]) == 50


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]
)
async def test_nothing_acknowledged_is_lost_when_processes_are_killed(
    tmp_path: Path, rounds: int
) -> None:
    names: list[str] = []
    for number in range(rounds):
        writers = [start(tmp_path, f"round{number}of{name}x", -1) for name in "ab"]
        names += kill_in_the_middle(writers)
        assert await check(tmp_path, names) >= len(names)


def kill_in_the_middle(writers: "list[subprocess.Popen[str]]") -> list[str]:
    """Kill processes at some moment of their work, and return what they said they had kept."""
    lines = []
    for writer in writers:
        assert writer.stdout is not None
        lines += [writer.stdout.readline() for _ in range(random.randint(1, 60))]
    for writer in writers:
        writer.kill()
    for writer in writers:
        assert writer.stdout is not None
        lines += writer.stdout.readlines()
        writer.stdout.close()
        writer.wait()
    # The pipe may end within the last line.
    return [line.strip() for line in lines if line.endswith("\n")]
