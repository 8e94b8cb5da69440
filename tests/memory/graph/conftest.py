"""What tests of the graph can ask for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from graphs import OpenGraphStore, graph_store_opener, running_graph
from stores import OpenBackend

from toolfold.memory.graph.encoding import GraphStore
from toolfold.memory.graph.service import Graph


@pytest.fixture
def open_graphs(open_backend: OpenBackend) -> OpenGraphStore:
    """Return a function that opens the graphs of a directory."""
    return graph_store_opener(open_backend)


@pytest.fixture
async def graphs(open_graphs: OpenGraphStore, tmp_path: Path) -> AsyncIterator[GraphStore]:
    async with open_graphs(tmp_path / "data") as graphs:
        yield graphs


@pytest.fixture
async def graph(open_backend: OpenBackend, tmp_path: Path) -> AsyncIterator[Graph]:
    async with running_graph(tmp_path / "data", open_backend=open_backend) as graph:
        yield graph
