"""The stores that the contract is held against, and what tests of it are written with."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes import FakeEmbedder

from toolfold.memory.models import Draft, note_hash
from toolfold.memory.note_vectors import embed_notes
from toolfold.memory.ranking.rank import rank
from toolfold.memory.sql.connection import SqlDatabase
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.store import EVERYTHING, Filter, Query, Store


class Backend(NamedTuple):
    """A database that is running, and the store of notes over it."""

    database: SqlDatabase
    store: Store


OpenBackend = Callable[[Path], AbstractAsyncContextManager[Backend]]
OpenStore = Callable[[Path], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def open_sqlite(directory: Path) -> AsyncIterator[Backend]:
    """Open the memory of a directory; opened twice, it is the same one."""
    file = SqliteFile(directory / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        yield Backend(file, store)


@asynccontextmanager
async def open_postgres(directory: Path) -> AsyncIterator[Backend]:
    from postgres_server import database_url  # scripts that tests start do not find it

    url = database_url(directory)
    from toolfold.memory.postgres.connection import PostgresMemory  # needs the extra
    from toolfold.memory.postgres.store import PostgresStore

    database = PostgresMemory(url)
    store = PostgresStore(database)
    async with database.running(), store.running():
        yield Backend(database, store)


BACKENDS = [
    pytest.param(open_sqlite, id="sqlite"),
    pytest.param(open_postgres, id="postgres"),
]


def store_opener(open_backend: OpenBackend) -> OpenStore:
    """Return what opens the notes alone."""

    @asynccontextmanager
    async def open_store(directory: Path) -> AsyncIterator[Store]:
        async with open_backend(directory) as backend:
            yield backend.store

    return open_store


sqlite_store = store_opener(open_sqlite)


def draft(content: str, **values: Any) -> Draft:
    thread, position = values.get("thread"), values.get("position")
    name = note_hash(content, thread=thread, position=position)
    return Draft(**({"content": content, "hash": name, "created": 1000.0} | values))


async def embed_all(store: Store, embedder: FakeEmbedder) -> None:
    """Give every note its vector, and have the store hold them ready."""
    await store.adopt(embedder.name, embedder.dimensions)
    await embed_notes(store, embedder, await store.unembedded())


async def found(
    store: Store,
    namespace: str,
    text: str,
    wanted: Filter = EVERYTHING,
    *,
    embedder: FakeEmbedder | None = None,
) -> list[str]:
    """Return what a search finds, best first: by words, and by meaning with an embedder."""
    vector = None if embedder is None else lambda: embedder.embed([text])[0].tolist()
    if embedder is not None:
        await store.warm(namespace)
    asked = Query(text=text, vector=vector, wanted=wanted)
    matches = await store.search(namespace, asked, depth=100)
    hits = rank(matches.lists, created=matches.created, quality=matches.quality, now=2000.0)
    notes = await store.load(namespace, [hit.key for hit in hits])
    return [notes[hit.key].content for hit in hits]
