"""What tests of memory can ask for."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder
from stores import OPENERS, OpenStore

from toolfold.memory.meaning import Meaning
from toolfold.memory.service import Memory
from toolfold.memory.sqlite import SqliteStore
from toolfold.memory.store import Store


@pytest.fixture(params=OPENERS)
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """Return a function that opens the store of a directory."""
    opener: OpenStore = request.param
    return opener


@pytest.fixture
async def store(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "data") as store:
        yield store


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_794_744_000.0  # Sunday 15 November 2026, 12:00 UTC

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    return Clock()


@pytest.fixture
async def memory(tmp_path: Path, embedder: FakeEmbedder, clock: Clock) -> AsyncIterator[Memory]:
    async with running_memory(tmp_path / "data", embedder, clock=clock) as memory:
        yield memory


@asynccontextmanager
async def running_memory(
    directory: Path, embedder: FakeEmbedder, *, namespace: str = "project", **options: Any
) -> AsyncIterator[Memory]:
    store = SqliteStore(directory / "memory.db")
    async with store.running():
        meaning = Meaning(store, embedder)
        async with meaning.running():
            yield Memory(store, meaning, namespace=namespace, **options)
