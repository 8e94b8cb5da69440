"""Many processes, and processes that die."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from fakes import FakeEmbedder
from memories import running_memory
from stores import found

from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore

SCRIPT = Path(__file__).with_name("writer_process.py")
DEADLINE_S = 120


def start(directory: Path, name: str, count: int) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(SCRIPT.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, SCRIPT, directory, name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "HOME": str(directory)},
    )


def is_intact(directory: Path) -> bool:
    with closing(sqlite3.connect(directory / "memory.db")) as connection:
        [verdict] = connection.execute("PRAGMA integrity_check").fetchone()
        return bool(verdict == "ok")


async def check(directory: Path, hashes: list[str], embedder: FakeEmbedder) -> None:
    """All these notes are there, and every note that is there has a vector."""
    async with running_memory(directory, embedder) as memory:
        with anyio.fail_after(DEADLINE_S):
            await memory.until_ready()
        for name in hashes:
            assert (await memory.get(name)).hash.startswith(name)
        health = await memory.health()
    assert (health.status, health.ready) == ("ok", True)
    assert len(set(hashes)) <= health.count
    assert is_intact(directory)


async def test_eight_processes_that_store_at_once_lose_nothing(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    writers = [start(tmp_path, f"writer{number}x", 250) for number in range(8)]
    hashes = []
    for writer in writers:
        output, _ = writer.communicate(timeout=DEADLINE_S)
        assert writer.returncode == 0
        hashes += output.split()

    assert len(set(hashes)) == 2000
    await check(tmp_path, hashes, embedder)
    async with running_memory(tmp_path, embedder) as memory:
        assert (await memory.health()).count == 2000
        for number in range(8):
            assert (await memory.search_by_tag(f"writer{number}x")).total == 250
        await memory.until_ready()
        file = SqliteFile(tmp_path / "memory.db")
        store = SqliteStore(file)
        async with file.running(), store.running():
            await store.adopt(embedder.name, embedder.dimensions)
            by_words = await found(store, "project", "writer5x77")
            by_both = await found(store, "project", "writer5x77", embedder=embedder)
    assert by_words == ["writer5x77 is a fact of writer5x"]
    assert by_both[0] == by_words[0]


@pytest.mark.parametrize(
    "rounds",
    [3, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])],
)
async def test_no_note_is_lost_when_its_process_is_killed(
    tmp_path: Path, embedder: FakeEmbedder, rounds: int
) -> None:
    hashes: list[str] = []
    for number in range(rounds):
        writers = [start(tmp_path, f"round{number}of{name}x", -1) for name in "ab"]
        hashes += kill_in_the_middle(writers)
        await check(tmp_path, hashes[-200:], embedder)

    assert len(hashes) >= rounds
    await check(tmp_path, hashes, embedder)


def kill_in_the_middle(writers: "list[subprocess.Popen[str]]") -> list[str]:
    """Kill processes at some moment of their work, and return what they said they had stored."""
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


FORK = """
import os, signal, sys, threading
from pathlib import Path
from toolfold.memory.sqlite.steps import SCHEMA
from toolfold.storage.database import Database

def add(name):
    insert = "INSERT INTO namespaces (name) VALUES (?)"
    return lambda connection: connection.execute(insert, (name,))

def names(connection):
    return sorted(name for (name,) in connection.execute("SELECT name FROM namespaces"))

def add_many():
    for number in range(300):
        database.write(add(f"parent {number}"))

path = Path(sys.argv[1]) / "memory.db"
database = Database(path, SCHEMA)
database.open()
database.read(names)
writing = threading.Thread(target=add_many)
writing.start()
to_parent, to_child = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(40)
    database.read(names)
    os.write(to_parent[1], b"1")
    os.read(to_child[0], 1)
    database.write(add("child"))
    os._exit(0)
writing.join()
os.read(to_parent[0], 1)
database.close()  # the last connection of a process empties the log, unless another has one
os.write(to_child[1], b"1")
status = os.waitpid(child, 0)[1]
database = Database(path, SCHEMA)
database.open()
print(status, len(database.read(names)), "child" in database.read(names))
database.close()
"""


def test_a_child_that_is_forked_writes_beside_its_parent(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, tmp_path], capture_output=True, text=True, timeout=DEADLINE_S
    )

    assert (done.stdout, done.stderr) == ("0 301 True\n", "")
    assert is_intact(tmp_path)
