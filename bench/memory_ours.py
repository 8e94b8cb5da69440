"""toolfold's side of the benchmarks of memory: homes that are filled, and their daemons."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from memory_sides import Side, dated
from packaging.requirements import Requirement
from stage import ROOT

from toolfold.embedding import BuiltinEmbedder, Embedder, Vectors
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore

NAMESPACE = "bench"
_BATCH = 1_000
_UNTIL_READY = """
from toolfold import api
while not api.health().ready:
    api.search("anything")
"""


class RandomEmbedder:
    """Gives vectors that mean nothing, at once, in the name of the built-in model.

    How long a search takes does not depend on what the vectors are.
    """

    name = BuiltinEmbedder.name
    dimensions = BuiltinEmbedder.dimensions

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one normalised row for each text."""
        rows = self._random.standard_normal((len(texts), self.dimensions)).astype(np.float32)
        found: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return found


def ours() -> Side:
    """Return toolfold as it is installed here, worked with through its daemon."""
    return Side(
        title="toolfold",
        python=Path(sys.executable),
        module="toolfold.api",
        server=[sys.executable, "-m", "toolfold", "mcp", "--tools", "memory"],
        installed=(ROOT / "src" / "toolfold", *_dependencies()),
        env_at=environ,
        fill=fill,
        begin=begin,
        end=end,
        served_mb=served_mb,
    )


def environ(home: Path) -> dict[str, str]:
    """Return the environment in which memory is kept in a directory."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TOOLFOLD_HOME": str(home),
        "TOOLFOLD_MEMORY_NAMESPACE": NAMESPACE,
    }


def fill(home: Path, size: int, embedder: Embedder | None = None) -> None:
    """Put so many notes into a directory, with their vectors."""

    async def main() -> None:
        file = SqliteFile(database(home))
        store = SqliteStore(file)
        meaning = NoteVectorizer(store, embedder or BuiltinEmbedder())
        async with file.running(), store.running(), meaning.running():
            memory = Memory(store, meaning, namespace=NAMESPACE)
            notes: list[Any] = [
                {"content": text, "created": created, "tags": ["bench"]}
                for text, created in dated(size)
            ]
            for start in range(0, size, _BATCH):
                await memory.store_batch(notes[start : start + _BATCH])
                await meaning.until_done()

    anyio.run(main)


def database(home: Path) -> Path:
    """Return the file of the store in a directory."""
    return home / "data" / "memory.db"


def begin(home: Path) -> None:
    """Start the daemon of a directory, and wait until it has everything in memory."""
    subprocess.run([sys.executable, "-c", _UNTIL_READY], env=environ(home), cwd=home, check=True)


def end(home: Path) -> None:
    """End the daemon of a directory."""
    command = [sys.executable, "-m", "toolfold", "stop", "--now"]
    subprocess.run(command, env=environ(home), cwd=home, capture_output=True, check=False)


@contextmanager
def daemon_at(home: Path) -> Iterator[None]:
    """Have a warm daemon in a directory for the length of this context."""
    try:
        begin(home)
        yield
    finally:
        end(home)


def served_mb(home: Path) -> float:
    """Return how much memory the daemon of a directory has, in MB."""
    return memory_mb(daemon_pid(home))


def daemon_pid(home: Path) -> int:
    """Return the process of the daemon of a directory."""
    command = [sys.executable, "-m", "toolfold", "status", "--json"]
    done = subprocess.run(command, env=environ(home), cwd=home, capture_output=True, check=True)
    pid: int = json.loads(done.stdout)["pid"]
    return pid


def memory_mb(pid: int | str = "self") -> float:
    """Return how much memory a process has, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def seconds_of(command: list[str], home: Path) -> float:
    """Run a command to its end, and return how long that took."""
    begun = time.perf_counter()
    subprocess.run(command, env=environ(home), cwd=home, capture_output=True, check=True)
    return time.perf_counter() - begun


def _dependencies() -> Iterator[Path]:
    """Yield every file that `pip install toolfold` brings besides toolfold."""
    wanted, seen = ["toolfold"], set[str]()
    while wanted:
        name = wanted.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError:  # for another system or Python
            continue
        if name in seen:
            continue
        seen.add(name)
        if name != "toolfold":
            yield from (Path(str(found.locate_file(file))) for file in found.files or ())
        needed = [Requirement(text) for text in found.requires or ()]
        wanted += [
            each.name.lower().replace("_", "-")
            for each in needed
            if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
