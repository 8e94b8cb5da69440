"""A hundred wrong usages: each ends with one sentence, a remedy, the right status, no traceback."""

import json
from pathlib import Path

import pytest
from support import ROOT

from toolfold.entrypoints.cli import run_command

TABLE = json.loads((ROOT / "tests" / "entrypoints" / "mistakes.json").read_text())
REMEDIES = (
    "Did you mean", "See `", "Usage: `", "There are", "`toolfold", "pass --", "takes ", "Put ",
    "Use ", "Name ", "Choose", "must be", "belongs after", "exclude", "terminal", ": line ",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a project, a server that is never started, and nothing else."""
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    servers = {"mcpServers": {"files": {"command": "no-such-program"}}}
    (home / "config" / "mcp.json").write_text(json.dumps(servers))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "code.py").write_text("1 + 1")
    monkeypatch.setenv("TOOLFOLD_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOOLFOLD_NO_DAEMON", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_a_hundred() -> None:
    assert len({tuple(row["words"]) for row in TABLE}) >= 100


@pytest.mark.parametrize("row", TABLE, ids=lambda row: " ".join(row["words"])[:60])
def test_a_mistake_ends_with_one_sentence_and_a_remedy(
    row: dict[str, object], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [str(word) for word in row["words"]]  # type: ignore[attr-defined]
    try:
        status: object = run_command(words)
    except SystemExit as left:
        status = left.code
    said = capfd.readouterr().err

    assert status == row.get("status", 2), said
    assert str(row["says"]) in said
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.strip()]
    assert len(lines) == 1, said
    assert lines[0].startswith("toolfold: ")
    assert any(remedy in lines[0] for remedy in REMEDIES), lines[0]
