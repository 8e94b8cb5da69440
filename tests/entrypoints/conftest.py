"""What the tests of the entrypoints share."""

import os
from pathlib import Path

import pytest
from machine import Machine, Ran

from toolfold.entrypoints.cli import run_command


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Machine:
    home = tmp_path / "home"
    project = home / "work"
    (project / ".git").mkdir(parents=True)
    for variable in [*os.environ]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(project)

    def run(*arguments: str) -> Ran:
        status = run_command(arguments)
        return Ran(status, *capsys.readouterr())

    return Machine(home.resolve(), project.resolve(), run)
