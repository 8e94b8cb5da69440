"""What the tests of the configuration share."""

from pathlib import Path

import pytest
from config_home import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home, project = tmp_path / "home", tmp_path / "home/work"
    (project / ".git").mkdir(parents=True)
    return Place(home=home.resolve(), project=project.resolve())
