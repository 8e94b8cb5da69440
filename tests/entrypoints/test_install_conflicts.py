"""Uninstall where a server cannot come back: it is never lost, and can come back later."""

import json
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

ORIGINAL = {"command": "npx", "env": {"TOKEN": "ORIGINAL"}}
OTHER = {"command": "other"}


def backups(machine: Machine) -> list[Path]:
    return sorted((machine.home / ".local/state/toolfold/backups").iterdir())


def add_server(path: Path, name: str, entry: dict[str, Any], table: str = "mcpServers") -> None:
    root = json.loads(path.read_text())
    root[table][name] = entry
    path.write_text(json.dumps(root, indent=2))


def remove_server(path: Path, name: str) -> None:
    root = json.loads(path.read_text())
    del root["mcpServers"][name]
    path.write_text(json.dumps(root))


def installed_with_a_second_github(machine: Machine, *, synced: bool) -> Path:
    path = machine.write("claude", json.dumps({"mcpServers": {"github": ORIGINAL}}, indent=2))
    machine.run("install", "claude")
    add_server(path, "github", OTHER)
    if synced:
        machine.run("sync")
    return path


@pytest.mark.parametrize("synced", [False, True], ids=["added", "synced"])
def test_a_server_whose_name_was_taken_since_stays_with_toolfold(
    machine: Machine, synced: bool
) -> None:
    path = installed_with_a_second_github(machine, synced=synced)

    ran = machine.run("uninstall", "claude")

    assert ran.status == 0
    assert "not put back: github: another server has its name" in ran.out
    assert json.loads(path.read_text())["mcpServers"] == {"github": OTHER}
    assert machine.servers() == {"github": ORIGINAL}
    assert str(backups(machine)[-1]) in ran.out


@pytest.mark.parametrize("synced", [False, True], ids=["added", "synced"])
def test_once_the_name_is_free_a_second_uninstall_puts_the_server_back(
    machine: Machine, synced: bool
) -> None:
    path = installed_with_a_second_github(machine, synced=synced)
    machine.run("uninstall", "claude")
    remove_server(path, "github")

    ran = machine.run("uninstall", "claude")

    assert "puts back   github" in ran.out
    assert json.loads(path.read_text())["mcpServers"] == {"github": ORIGINAL}
    assert not machine.servers_file.exists()
    assert backups(machine) == []


def test_a_server_that_waits_to_come_back_does_not_count_as_an_install(machine: Machine) -> None:
    path = installed_with_a_second_github(machine, synced=False)
    machine.run("uninstall", "claude")

    nothing = machine.run("sync")
    machine.run("install", "claude")
    folded = json.loads(path.read_text())["mcpServers"]
    machine.run("uninstall", "claude")

    assert nothing.status == 2
    assert list(folded) == ["toolfold"]
    assert json.loads(path.read_text())["mcpServers"] == {"github": OTHER}
    assert machine.servers() == {"github": ORIGINAL}


def test_a_server_that_was_written_again_as_it_was_is_back(machine: Machine) -> None:
    path = installed_with_a_second_github(machine, synced=False)
    add_server(path, "github", ORIGINAL)

    ran = machine.run("uninstall", "claude")

    assert "puts back   github" in ran.out
    assert json.loads(path.read_text())["mcpServers"] == {"github": ORIGINAL}
    assert not machine.servers_file.exists()
    assert backups(machine) == []


def test_a_server_that_one_client_still_waits_for_stays_when_another_gets_it_back(
    machine: Machine,
) -> None:
    machine.write("cursor", json.dumps({"mcpServers": {"github": ORIGINAL}}))
    installed_with_a_second_github(machine, synced=False)
    machine.run("install", "cursor")

    machine.run("uninstall", "claude")
    machine.run("uninstall", "cursor")

    assert machine.servers() == {"github": ORIGINAL}


@pytest.mark.parametrize("first", ["cursor", "codex"])
def test_the_last_client_that_goes_takes_the_file_along_that_install_made(
    machine: Machine, first: str
) -> None:
    machine.write("cursor", '{"mcpServers": {"a": {"command": "x"}}}')
    machine.write("codex", '[mcp_servers.b]\ncommand = "y"\n')
    machine.run("install", "cursor", "codex")

    machine.run("uninstall", first)
    is_there = machine.servers_file.exists()
    machine.run("uninstall", "cursor" if first == "codex" else "codex")

    assert is_there
    assert not machine.servers_file.exists()


def test_an_edited_file_loses_the_table_that_install_made(machine: Machine) -> None:
    path = machine.write("vscode", '{\n  "inputs": []\n}\n')
    machine.run("install", "vscode")
    add_server(path, "late", OTHER, "servers")
    machine.run("sync")
    path.write_text(path.read_text().replace('"inputs": []', '"inputs": [ ]'))
    late = machine.run("uninstall", "vscode")
    with_late = json.loads(path.read_text())
    path.write_text('{ "inputs": [] }')
    machine.run("install", "vscode")
    path.write_text(json.dumps(json.loads(path.read_text()), indent=8))
    machine.run("uninstall", "vscode")

    assert late.status == 0
    assert with_late == {"inputs": [], "servers": {"late": OTHER}}
    assert json.loads(path.read_text()) == {"inputs": []}


def test_a_server_whose_project_is_gone_from_the_file_stays_with_toolfold(
    machine: Machine,
) -> None:
    servers = {str(machine.project): {"mcpServers": {"local": ORIGINAL}}}
    path = machine.write("claude", json.dumps({"mcpServers": {}, "projects": servers}))
    machine.run("install", "claude")
    root = json.loads(path.read_text())
    path.write_text(json.dumps({**root, "projects": {}}))

    ran = machine.run("uninstall", "claude")

    assert ran.status == 0
    assert "not put back: local: its place in the file no longer exists" in ran.out
    assert json.loads(path.read_text()) == {"mcpServers": {}, "projects": {}}
    assert machine.servers()["local"]["env"] == {"TOKEN": "ORIGINAL"}
