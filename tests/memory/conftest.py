"""What tests of memory can ask for."""

from collections.abc import AsyncIterator
from datetime import UTC
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from memories import Clock, running_memory
from stores import OPENERS, OpenStore

from toolfold.memory.service import Memory
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


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def memory(tmp_path: Path, embedder: FakeEmbedder, clock: Clock) -> AsyncIterator[Memory]:
    async with running_memory(tmp_path / "data", embedder, clock=clock, zone=UTC) as memory:
        yield memory
