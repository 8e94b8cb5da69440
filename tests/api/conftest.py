"""What tests of the API can ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from api.memory_home import WAYS, MemoryHome, in_this_process, memory_home

from toolfold.api import door


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryHome]:
    """One memory for all tests of a module: each has a project of its own in it."""
    with memory_home(tmp_path_factory.mktemp("m")) as home:
        yield home
        door.close()


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[MemoryHome]:
    """A memory for a test that does it harm."""
    with memory_home(tmp_path) as home:
        yield home


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def project(request: pytest.FixtureRequest, module_home: MemoryHome) -> Path:
    return module_home.directory(request.node.name.replace("/", "_")[-60:])


@pytest.fixture
def memory(
    module_home: MemoryHome, way: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Have `toolfold.api` answer from an empty project, in either way."""
    in_this_process(module_home, way, project, monkeypatch)
    yield
    assert not door._doors._daemonless, "it took the other way in silence"
