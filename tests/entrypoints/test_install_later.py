"""What happens to a client after install, and how that is kept, synced and reported."""

import client_files
import pytest
from machine import Machine, realistic

from toolfold.config.config import load_config
from toolfold.entrypoints.commands.doctor import Findings, examine_configuration
from toolfold.entrypoints.install.drift import drift


def test_changes_made_after_install_survive_uninstall(machine: Machine) -> None:
    path = machine.write("claude", realistic("claude", machine))
    machine.run("install", "claude")
    text = path.read_text().replace('"numStartups": 412', '"numStartups": 413')
    path.write_text(text)

    ran = machine.run("uninstall", "claude")

    expected = realistic("claude", machine).replace('"numStartups": 412', '"numStartups": 413')
    assert "what was changed since install stays" in ran.out
    assert path.read_text() == expected


ADDED = {
    "cursor": ('"here": {', '"late": { "command": "late" }, // mine\n        "here": {'),
    "vscode": ('"asked": {', '"late": { "command": "late" },\n\t\t"asked": {'),
    "codex": ("[tools]", '[mcp_servers.late]\ncommand = "late" # mine\n\n[tools]'),
}


# Servers with the text they had, and every comment.
PIECES = {
    "cursor": [
        *("// Servers for Cursor. { not code }", "// the issue tracker", "// keep this one"),
        *(
            "/* remote */",
            "// untouched",
            '"here": {',
            '"env": { "TOKEN": "${env:GITHUB_TOKEN}", },',
        ),
        '"docs": { "url": "https://docs.example.org/mcp", "headers": {',
    ],
    "vscode": [
        '"asked": {\n\t\t\t"type": "stdio", "command": "npx", "args": ["server"]',
        '"args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"],\n\t\t}',
        '"remote": { "type": "http", "url": "https://example.org/mcp" }',
        "// last",
    ],
    "codex": [
        client_files.CODEX.split("[mcp_servers.github]")[0],
        client_files.CODEX[client_files.CODEX.index("[mcp_servers.github]") :].split("\n[tools]")[
            0
        ],
        "[tools]\nweb_search = true\n",
        client_files.CODEX[client_files.CODEX.index('[mcp_servers."with.dot"]') :].split("\n\n")[0],
        client_files.CODEX[client_files.CODEX.index("[mcp_servers.limited]") :],
    ],
}


@pytest.mark.parametrize("client", ADDED)
def test_a_server_added_after_install_survives_uninstall_beside_those_that_come_back(
    machine: Machine, client: str
) -> None:
    original = realistic(client, machine)
    path = machine.write(client, original)
    machine.run("install", client)
    path.write_text(path.read_text().replace(*ADDED[client]))

    ran = machine.run("uninstall", client)

    text = path.read_text()
    assert ran.status == 0
    assert "toolfold" not in text
    assert '"late"' in text or "mcp_servers.late" in text
    for piece in PIECES[client]:
        assert piece in original
        assert piece in text
    assert not machine.servers_file.exists()


@pytest.mark.parametrize("client", ADDED)
def test_sync_folds_in_what_was_added_and_uninstall_puts_all_back(
    machine: Machine, client: str
) -> None:
    original = realistic(client, machine)
    path = machine.write(client, original)
    machine.run("install", client)
    added = path.read_text().replace(*ADDED[client])
    path.write_text(added)
    config = load_config()

    [reported] = drift(config.directories, {"HOME": str(machine.home)}, machine.project)
    synced = machine.run("sync")
    servers = machine.servers()
    after = drift(config.directories, {"HOME": str(machine.home)}, machine.project)
    quiet = machine.state()
    again = machine.run("sync", client)
    unchanged = machine.state()
    undone = machine.run("uninstall", client)

    assert "late; `toolfold sync` folds them in" in reported
    assert synced.status == 0
    assert servers["late"] == {"command": "late"}
    assert after == []
    assert again.status == 0
    assert unchanged == quiet
    assert undone.status == 0
    assert "late" in path.read_text()
    assert "toolfold" not in path.read_text()
    assert not machine.servers_file.exists()


def test_drift_says_when_the_entry_is_gone_or_the_file_is_broken(machine: Machine) -> None:
    path = machine.write("cursor", client_files.CURSOR)
    machine.run("install", "cursor")
    directories, environ = load_config().directories, {"HOME": str(machine.home)}

    path.write_text("{}")
    gone = drift(directories, environ, machine.project)
    path.write_text("{")
    broken = drift(directories, environ, machine.project)

    assert "`toolfold install cursor` restores it" in gone[0]
    assert "is not valid JSON" in broken[0]


def test_doctor_reports_what_was_added_to_a_client(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machine.write("codex", client_files.CODEX)
    machine.run("install", "codex")
    path.write_text(path.read_text().replace(*ADDED["codex"]))

    examine_configuration(load_config(), Findings())

    expected = f"!         codex (user): {path} has servers beside toolfold: late"
    assert expected in capsys.readouterr().out


def test_sync_without_install_says_so(machine: Machine) -> None:
    ran = machine.run("sync")

    assert ran.status == 2
    assert "toolfold is not installed in claude, cursor, vscode, codex" in ran.err


def test_a_server_that_was_edited_in_toolfold_stays_there(machine: Machine) -> None:
    machine.write("cursor", '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    machine.run("install", "cursor")
    edited = machine.servers_file.read_text().replace('"x"', '"mine"')
    machine.servers_file.write_text(edited)

    ran = machine.run("uninstall", "cursor")

    assert "leaves      a" in ran.out
    assert machine.servers() == {"a": {"command": "mine"}}


def test_a_server_that_was_removed_from_toolfold_is_back_in_its_client(machine: Machine) -> None:
    path = machine.write(
        "cursor", '{"mcpServers": {"a": {"command": "/opt/bin/x"}, "b": {"command": "y"}}}'
    )
    shown = machine.run("install", "cursor", "--dry-run")
    machine.run("install", "cursor")
    machine.run("remove", "a")

    ran = machine.run("uninstall", "cursor")

    assert "a: you removed it from toolfold; it is back in cursor" in ran.out
    assert "it was changed there since" not in ran.out
    assert '"a"' in path.read_text()
    assert '"command": "/opt/bin/x"' in shown.out


def test_a_client_whose_file_was_deleted_leaves_its_servers_with_toolfold(
    machine: Machine,
) -> None:
    path = machine.write("cursor", client_files.CURSOR)
    machine.run("install", "cursor")
    path.unlink()

    ran = machine.run("uninstall", "cursor")

    assert ran.status == 0
    assert "not put back: github" in ran.out
    assert set(machine.servers()) == {"github", "docs"}
    assert not path.exists()
