"""What tests of memory can ask for."""

from collections.abc import AsyncIterator
from datetime import UTC
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from memories import Clock, running_memory
from stores import BACKENDS, OpenBackend, OpenStore, store_opener

from toolfold.memory.service import Memory
from toolfold.memory.store import Store


@pytest.fixture(params=BACKENDS)
def open_backend(request: pytest.FixtureRequest) -> OpenBackend:
    """Return a function that opens the memory of a directory, on every database there is."""
    opener: OpenBackend = request.param
    return opener


@pytest.fixture
def open_store(open_backend: OpenBackend) -> OpenStore:
    """Return a function that opens the store of a directory."""
    return store_opener(open_backend)


@pytest.fixture
async def store(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "data") as store:
        yield store


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def memory(
    open_backend: OpenBackend, tmp_path: Path, embedder: FakeEmbedder, clock: Clock
) -> AsyncIterator[Memory]:
    async with running_memory(
        tmp_path / "data", embedder, open_backend=open_backend, clock=clock, zone=UTC
    ) as memory:
        yield memory
