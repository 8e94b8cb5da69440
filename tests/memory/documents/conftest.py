"""What tests of documents can ask for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from memories import Clock
from running import Library, running_library
from stores import OpenBackend


@pytest.fixture
async def library(
    open_backend: OpenBackend, tmp_path: Path, embedder: FakeEmbedder, clock: Clock
) -> AsyncIterator[Library]:
    async with running_library(
        tmp_path / "data", embedder, clock=clock, open_backend=open_backend
    ) as library:
        yield library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for files."""
    path = tmp_path / "files"
    path.mkdir()
    return path
