"""Documents that run over a store of their own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memories import Clock
from stores import OpenBackend, open_sqlite

from toolfold.embedding import Embedder
from toolfold.memory.documents.service import Documents
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sql.documents import SqlDocuments


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
    open_backend: OpenBackend = open_sqlite,
) -> AsyncIterator[Library]:
    clock = clock or Clock()
    async with open_backend(directory) as (database, store):
        meaning = NoteVectorizer(store, embedder)
        async with meaning.running():
            documents = Documents(
                SqlDocuments(database), meaning, namespace=namespace, roots=roots, clock=clock
            )
            yield Library(documents, Memory(store, meaning, namespace=namespace, clock=clock))
