"""`toolfold add` and `toolfold remove`."""

import json
from pathlib import Path

import pytest
from support import test_server as server_entry

from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.cli import run_command

FILE = """\
{
  // mine
  "mcpServers": {
    "a": {"command": "true"} // stays
  }
}
"""


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLFOLD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "home" / "config" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    spec = {
        "openapi": "3.1.0",
        "info": {"title": "Shop API", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {"/orders": {"get": {"operationId": "listOrders", "responses": {}}}},
    }
    (tmp_path / "shop.json").write_text(json.dumps(spec))
    return path


def test_an_api_is_added_and_removed_and_comments_stay(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["add", "openapi", "shop.json"]) == 0
    assert "1 operations" in capsys.readouterr().out
    text = own_file.read_text()
    assert "// mine" in text
    assert "// stays" in text
    servers = parse_jsonc(text.encode()).value["mcpServers"]  # type: ignore[index, call-overload]
    assert servers["shop"] == {"openapi": str(own_file.parents[2] / "shop.json")}  # type: ignore[index, call-overload]
    assert run_command(["remove", "shop"]) == 0
    after = parse_jsonc(own_file.read_bytes()).value
    assert after == {"mcpServers": {"a": {"command": "true"}}}
    assert "// stays" in own_file.read_text()


def test_a_dry_run_says_what_an_api_offers_and_adds_nothing(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["add", "openapi", "shop.json", "--name", "x", "--dry-run"]) == 0
    assert "x.listOrders" in capsys.readouterr().out
    assert own_file.read_text() == FILE


def test_a_server_is_tried_at_once(own_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    entry = server_entry("null")
    assert run_command(["add", "nil", "--", entry["command"], *entry["args"]]) == 0
    assert "nil offers" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "a", "https://x.example/mcp"], "already"),
        (["add", "b"], "Say what to add"),
        (["add", "openapi", "missing.yaml"], "no such file"),
        (["add", "openapi", "shop.json", "--auth", "x"], "KEY=VALUE"),
        (["remove", "zzz"], "no server 'zzz'"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    own_file: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run_command(words) == 2
    assert said in capsys.readouterr().err
    assert own_file.read_text() == FILE
