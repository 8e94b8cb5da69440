"""Documents that run over a store of their own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memories import Clock

from toolfold.embedding import Embedder
from toolfold.memory.documents.service import Documents
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.documents import SqliteDocuments
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore


@dataclass(frozen=True)
class Library:
    """Documents, and the memory that finds them."""

    documents: Documents
    memory: Memory


@asynccontextmanager
async def running_library(
    directory: Path,
    embedder: Embedder,
    *,
    namespace: str = "project",
    roots: Sequence[Path] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Library]:
    file = SqliteFile(directory / "memory.db")
    store = SqliteStore(file)
    clock = clock or Clock()
    async with file.running(), store.running():
        meaning = NoteVectorizer(store, embedder)
        async with meaning.running():
            documents = Documents(
                SqliteDocuments(file), meaning, namespace=namespace, roots=roots, clock=clock
            )
            yield Library(documents, Memory(store, meaning, namespace=namespace, clock=clock))
