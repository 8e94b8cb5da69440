"""`toolfold secrets`, and `toolfold install --move-secrets`."""

import io
import json
import sys
from pathlib import Path

import pytest
from machine import Machine

from toolfold.config.config import load_config
from toolfold.config.trust import Trust
from toolfold.storage.secrets import SecretStore

TOKEN = "ghp-Hidden-0123"


@pytest.fixture
def store(machine: Machine) -> SecretStore:
    return SecretStore(machine.home / ".local/share/toolfold", keyring=lambda: None)


def with_servers(machine: Machine, **servers: object) -> None:
    machine.servers_file.parent.mkdir(parents=True, exist_ok=True)
    machine.servers_file.write_text(json.dumps({"mcpServers": servers}))


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_secret_is_piped_in_listed_by_name_and_removed(
    machine: Machine, store: SecretStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_servers(machine, git={"command": "srv", "env": {"T": "${keyring:TOKEN}"}})
    missing = machine.run("secrets")
    piped(monkeypatch, f"{TOKEN}\n")

    given = machine.run("secrets", "set", "TOKEN")
    listed = machine.run("secrets", "list", "--json")
    removed = machine.run("secrets", "remove", "TOKEN", "--yes")

    assert "missing" in missing.out
    assert "mode 0600, not encrypted" in given.out
    assert "Used by git" in given.out
    assert json.loads(listed.out) == [{"name": "TOKEN", "kept_in": "file", "used_by": ["git"]}]
    assert "git cannot start without it" in removed.out
    assert store.get("TOKEN") is None
    assert TOKEN not in missing.out + given.out + listed.out + removed.out


@pytest.mark.parametrize("words", [("set", "no name"), ("remove", "X")])
def test_a_wrong_name_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    piped(monkeypatch, TOKEN)

    assert machine.run("secrets", *words).status == 2


def test_a_value_is_no_argument(machine: Machine, store: SecretStore) -> None:
    with pytest.raises(SystemExit):
        machine.run("secrets", "set", "TOKEN", TOKEN)

    assert not store.kept()


def test_a_given_secret_changes_the_configuration_of_its_server_alone(
    machine: Machine, store: SecretStore
) -> None:
    entry = {"command": "srv", "env": {"T": "${keyring:TOKEN}"}}
    with_servers(machine, git=entry, other={"command": "srv"})
    environ = {"HOME": str(machine.home)}
    before = load_config(cwd=machine.home, environ=environ)
    store.put("TOKEN", TOKEN)
    after = load_config(cwd=machine.home, environ=environ)

    assert [server.missing for server in before.servers] == [("TOKEN",), ()]
    assert [server.missing for server in after.servers] == [(), ()]
    assert before.servers[0] != after.servers[0]
    assert before.servers[1] == after.servers[1]
    assert TOKEN not in repr(after)


@pytest.mark.parametrize("reference", ["${cmd:cat /etc/passwd}", "${file:/etc/passwd}"])
def test_a_projects_file_takes_no_secret_from_commands_or_files(
    machine: Machine, reference: str
) -> None:
    path = machine.project / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"x": {"command": "s", "env": {"T": reference}}}}))
    environ = {"HOME": str(machine.home)}
    Trust(machine.home / ".local/state/toolfold").trust(path)

    config = load_config(cwd=machine.project, environ=environ)

    assert not config.servers
    assert "which only your own file may do" in str(config.faults)


def test_trusting_a_project_shows_which_secrets_it_gets(machine: Machine) -> None:
    entry = {"command": "srv", "env": {"T": "${keyring:TOKEN}"}}
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"x": entry}}))

    config = load_config(cwd=machine.project, environ={"HOME": str(machine.home)})

    assert "gets the secret TOKEN" in str(config.faults)


INPUTS = [
    {"id": "key", "type": "promptString", "description": "Key of the shop", "password": True},
    {"id": "zone", "type": "pickString", "options": ["eu", "us"], "default": "eu"},
]


def test_inputs_as_of_vs_code_are_secrets_with_words_and_defaults(
    machine: Machine, tmp_path: Path
) -> None:
    entry = {"command": "srv", "env": {"KEY": "${input:key}", "ZONE": "${input:zone}"}}
    machine.servers_file.parent.mkdir(parents=True, exist_ok=True)
    machine.servers_file.write_text(json.dumps({"inputs": INPUTS, "servers": {"shop": entry}}))

    [server] = load_config(cwd=tmp_path, environ={"HOME": str(machine.home)}).servers

    assert server.missing == ("key",)
    assert {each.id: each.is_secret for each in server.inputs} == {"key": True, "zone": False}


CLIENT = {
    "git": {"command": "srv", "env": {"GITHUB_TOKEN": TOKEN, "MODE": "everything", "PIN": "123"}},
    "web": {"url": "https://example.org/mcp", "headers": {"Authorization": f"Bearer {TOKEN}x"}},
}


def test_tokens_move_from_a_clients_file_and_come_back(
    machine: Machine, store: SecretStore
) -> None:
    text = json.dumps({"mcpServers": CLIENT}, indent=2)
    path = machine.write("cursor", text)

    dry = machine.run("install", "cursor", "--move-secrets", "--dry-run")
    assert not store.kept()
    done = machine.run("install", "cursor", "--move-secrets")
    servers = machine.servers()
    kept = {name: store.get(name) for name in store.kept()}
    back = machine.run("uninstall", "cursor")

    assert servers["git"]["env"] == {
        "GITHUB_TOKEN": "${keyring:git/GITHUB_TOKEN}",
        "MODE": "everything",
        "PIN": "123",
    }
    assert servers["web"]["headers"] == {"Authorization": "Bearer ${keyring:web/Authorization}"}
    assert kept == {"git/GITHUB_TOKEN": TOKEN, "web/Authorization": f"{TOKEN}x"}
    assert path.read_text() == text
    assert not store.kept()
    assert TOKEN not in dry.out + done.out + back.out
    assert "git/GITHUB_TOKEN" in done.out


def test_tokens_stay_where_they_are_unless_it_is_asked_for(
    machine: Machine, store: SecretStore
) -> None:
    machine.write("cursor", json.dumps({"mcpServers": CLIENT}))

    machine.run("install", "cursor")

    assert machine.servers()["git"] == CLIENT["git"]
    assert not store.kept()
