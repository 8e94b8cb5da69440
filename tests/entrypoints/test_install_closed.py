"""Servers that the user switched off in Claude Code: install does not switch them on."""

import json

import pytest
from machine import Machine

from toolfold.config.config import load_config
from toolfold.entrypoints.install.drift import drift

SERVERS = {"danger": {"command": "danger"}, "fine": {"command": "fine"}}


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_server_that_some_project_has_switched_off_stays(machine: Machine, where: str) -> None:
    project = str(machine.project) if where == "here" else "/home/ada/other"
    projects = {project: {"disabledMcpServers": ["danger"]}, "/empty": {}, "/odd": 3}
    path = machine.write("claude", json.dumps({"mcpServers": SERVERS, "projects": projects}))

    ran = machine.run("install", "claude")

    assert f"stays       danger: is switched off in {project}" in ran.out
    assert set(machine.servers()) == {"fine"}
    assert "danger" in json.loads(path.read_text())["mcpServers"]
    assert drift(load_config().directories, {"HOME": str(machine.home)}, machine.project) == []


def test_a_server_of_one_project_is_closed_by_that_project_alone(machine: Machine) -> None:
    projects = {
        str(machine.project): {"mcpServers": SERVERS, "disabledMcpServers": ["danger"]},
        "/home/ada/other": {"disabledMcpServers": ["fine"]},
    }
    machine.write("claude", json.dumps({"projects": projects}))

    ran = machine.run("install", "claude")

    assert "stays       danger" in ran.out
    assert set(machine.servers()) == {"fine"}


@pytest.mark.parametrize(
    "key", ["disabledMcpjsonServers", "disabledMcpServers"], ids=["refused", "toggled"]
)
def test_a_server_of_the_project_that_the_user_switched_off_stays(
    machine: Machine, key: str
) -> None:
    machine.write("claude", json.dumps({"mcpServers": SERVERS}), "--project")
    projects = {str(machine.project / "sub"): {key: ["danger"]}, "/other": {key: ["fine"]}}
    machine.write("claude", json.dumps({"projects": projects}))

    ran = machine.run("install", "claude", "--project")

    assert "stays       danger: is switched off in" in ran.out
    assert set(machine.servers(machine.project / ".toolfold/mcp.json")) == {"fine"}


@pytest.mark.parametrize(
    "settings",
    ["home/.claude/settings.json", ".claude/settings.json", ".claude/settings.local.json"],
)
def test_settings_close_servers_of_the_project_too(machine: Machine, settings: str) -> None:
    machine.write("claude", json.dumps({"mcpServers": SERVERS}), "--project")
    base = machine.home.parent if settings.startswith("home") else machine.project
    path = base / settings
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"disabledMcpjsonServers": ["danger"]} // mine')

    ran = machine.run("install", "claude", "--project")

    assert f"stays       danger: is switched off in {path}" in ran.out
    assert set(machine.servers(machine.project / ".toolfold/mcp.json")) == {"fine"}


def test_where_it_cannot_be_read_what_is_switched_off_nothing_moves(machine: Machine) -> None:
    text = json.dumps({"mcpServers": SERVERS})
    path = machine.write("claude", text, "--project")
    settings = machine.project / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text("{ broken")

    ran = machine.run("install", "claude", "--project")

    assert ran.status == 2
    assert str(settings) in ran.err
    assert path.read_text() == text
