"""A process of its own that stores notes: `writer_process.py DIRECTORY NAME COUNT`.

Prints the hash of each note when it is stored, and ends without waiting for vectors.
"""

import sys
from itertools import count, islice
from pathlib import Path

import anyio
from fakes import FakeEmbedder

from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore


async def main(directory: Path, name: str, most: int | None) -> None:
    file = SqliteFile(directory / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        meaning = NoteVectorizer(store, FakeEmbedder())
        async with meaning.running():
            memory = Memory(store, meaning, namespace="project")
            for number in islice(count(), most):
                stored = await memory.store(f"{name}{number} is a fact of {name}", tags=name)
                print(stored, flush=True)


if __name__ == "__main__":
    most = int(sys.argv[3])
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], most if most >= 0 else None)
