"""What tests of hooks can ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hooks.home import HookHome, hook_home


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HookHome]:
    """One toolfold for all tests of a module: each has a project of its own in it."""
    with hook_home(tmp_path_factory.mktemp("h")) as home:
        yield home


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[HookHome]:
    """A toolfold for a test that does it harm."""
    with hook_home(tmp_path) as home:
        yield home


@pytest.fixture
def project(request: pytest.FixtureRequest, shared_home: HookHome) -> Path:
    """A project without git, and without notes."""
    project = shared_home.project.parent / request.node.name.replace("/", "_")[-60:]
    (project / ".toolfold").mkdir(parents=True)
    return project
