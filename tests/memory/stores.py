"""The stores that the contract is held against, and what tests of it are written with."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder

from toolfold.embedding import quantize
from toolfold.memory.hashes import note_hash
from toolfold.memory.models import Draft
from toolfold.memory.note_vectors import embed_notes
from toolfold.memory.ranking.rank import rank
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.store import EVERYTHING, Filter, Query, Store

OpenStore = Callable[[Path], AbstractAsyncContextManager[Store]]

__all__ = ["OPENERS", "FakeEmbedder", "OpenStore", "draft", "embed_all", "found", "quantize"]


@asynccontextmanager
async def sqlite_store(directory: Path) -> AsyncIterator[Store]:
    """Open the store of a directory; opened twice, it is the same one."""
    file = SqliteFile(directory / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        yield store


OPENERS = [pytest.param(sqlite_store, id="sqlite")]


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
