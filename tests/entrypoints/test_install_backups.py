"""The texts before each change: closed to others, of any size, and gone with the install."""

import json
import stat

import pytest
from machine import Machine, realistic


def test_a_backup_can_be_read_by_nobody_else(machine: Machine) -> None:
    machine.write("claude", realistic("claude", machine))
    machine.run("install", "claude")

    record, text = sorted((machine.home / ".local/state/toolfold/backups").iterdir(), key=len_of)

    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    assert [stat.S_IMODE(each.stat().st_mode) for each in (record, text)] == [0o600, 0o600]
    assert text.read_text() == realistic("claude", machine)
    assert "ghp_hidden" not in record.read_text()


def len_of(path: object) -> int:
    return len(str(path))


@pytest.mark.soak
def test_a_large_file_can_be_synced_and_uninstalled_however_often_it_changed(
    machine: Machine,
) -> None:
    history = ["x" * 1000] * 24_000
    servers = {"first": {"command": "first"}}
    original = json.dumps({"history": history, "mcpServers": servers})
    path = machine.write("claude", original)
    machine.run("install", "claude")
    for name in ("second", "third"):
        root = json.loads(path.read_text())
        root["mcpServers"][name] = {"command": name}
        path.write_text(json.dumps(root))
        assert machine.run("sync").status == 0

    ran = machine.run("uninstall", "claude")

    assert (ran.status, ran.err) == (0, "")
    assert set(json.loads(path.read_text())["mcpServers"]) == {"first", "second", "third"}
    assert list((machine.home / ".local/state/toolfold/backups").iterdir()) == []


def test_a_backup_that_was_changed_is_named_and_nothing_is_undone_with_it(
    machine: Machine,
) -> None:
    path = machine.write("cursor", '{"mcpServers": {"a": {"command": "x"}}}')
    machine.run("install", "cursor")
    [text] = (machine.home / ".local/state/toolfold/backups").glob("*.before")
    text.write_text("{}")
    before = machine.state()

    ran = machine.run("uninstall", "cursor")

    assert ran.status == 2
    assert str(text) in ran.err
    assert machine.state() == before
    assert "toolfold" in path.read_text()
