"""A running memory, and a clock for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fakes import FakeEmbedder
from stores import OpenBackend, open_sqlite

from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_794_744_000.0  # Sunday 15 November 2026, 12:00 UTC

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def running_memory(
    directory: Path,
    embedder: FakeEmbedder,
    *,
    namespace: str = "project",
    open_backend: OpenBackend = open_sqlite,
    **options: Any,
) -> AsyncIterator[Memory]:
    async with open_backend(directory) as backend:
        meaning = NoteVectorizer(backend.store, embedder)
        async with meaning.running():
            yield Memory(backend.store, meaning, namespace=namespace, **options)
