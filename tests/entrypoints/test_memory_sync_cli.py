"""`toolfold memory sync` between two homes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import python


def toolfold(home: Path, *words: str) -> Any:
    """Run a command at one home, without a daemon, and return its JSON."""
    done = subprocess.run(
        [python(), "-m", "toolfold", "memory", *words, "--namespace", "notes", "--json"],
        env={"TOOLFOLD_HOME": str(home), "HOME": str(home), "TOOLFOLD_NO_DAEMON": "1"},
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "two", "shared"):
        (tmp_path / name).mkdir()
    return tmp_path / "one", tmp_path / "two"


def test_two_homes_share_notes_by_a_folder(homes: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = homes
    (tmp_path / "key").write_bytes(b"k" * 32)
    by = ("sync", "../shared", "--key-file", "../key")
    toolfold(one, "store", "The port is 5433")

    assert toolfold(one, *by)["sent"] == 1
    assert toolfold(two, *by)["received"] == 1

    assert toolfold(two, "search", "port")["total"] == 1
