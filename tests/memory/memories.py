"""A running memory, and a clock for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fakes import FakeEmbedder

from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_794_744_000.0  # Sunday 15 November 2026, 12:00 UTC

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def running_memory(
    directory: Path, embedder: FakeEmbedder, *, namespace: str = "project", **options: Any
) -> AsyncIterator[Memory]:
    file = SqliteFile(directory / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        meaning = NoteVectorizer(store, embedder)
        async with meaning.running():
            yield Memory(store, meaning, namespace=namespace, **options)
