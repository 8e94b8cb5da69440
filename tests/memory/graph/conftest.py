"""What tests of the graph can ask for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from graphs import GRAPH_OPENERS, OpenGraphStore, running_graph

from toolfold.memory.graph.service import Graph
from toolfold.memory.graph.store import GraphStore


@pytest.fixture(params=GRAPH_OPENERS)
def open_graphs(request: pytest.FixtureRequest) -> OpenGraphStore:
    """Return a function that opens the graphs of a directory."""
    opener: OpenGraphStore = request.param
    return opener


@pytest.fixture
async def graphs(open_graphs: OpenGraphStore, tmp_path: Path) -> AsyncIterator[GraphStore]:
    async with open_graphs(tmp_path / "data") as graphs:
        yield graphs


@pytest.fixture
async def graph(tmp_path: Path) -> AsyncIterator[Graph]:
    async with running_graph(tmp_path / "data") as graph:
        yield graph
