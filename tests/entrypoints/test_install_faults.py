"""Files that are broken, closed, linked or changed: a clear error, and nothing is lost."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import client_files
import pytest
from machine import Machine, realistic
from support import python

from toolfold.entrypoints.install.files import Files
from toolfold.errors import ConfigError

BROKEN = {
    "bad JSON": (b'{"mcpServers": {', "is not valid JSON"),
    "duplicate keys": (b'{"mcpServers": {"a": {}, "a": {}}}', "`mcpServers.a` twice"),
    "not an object": (b"[1]", "must hold a JSON object"),
    "not a table": (b'{"mcpServers": []}', "must be an object that names servers"),
    "not UTF-8": (b'{"a": "\xff"}', "is not text in UTF-8"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_broken_file_gets_a_clear_error_and_is_left_untouched(
    machine: Machine, command: str, kind: str
) -> None:
    content, complaint = BROKEN[kind]
    path = machine.path("cursor")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    ran = machine.run(command, "cursor")

    assert ran.status == 2
    assert complaint in ran.err
    assert str(path) in ran.err
    assert "untouched" in ran.err
    assert path.read_bytes() == content
    assert not machine.servers_file.exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[mcp_servers.a", "is not valid TOML"),
        ('mcp_servers = "a"', "must be a table that names servers"),
        ("a = " + "[" * 5000, "is nested too deeply"),
    ],
)
def test_broken_toml_gets_a_clear_error_too(machine: Machine, text: str, complaint: str) -> None:
    path = machine.write("codex", text)

    ran = machine.run("install", "codex")

    assert ran.status == 2
    assert complaint in ran.err
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("client", "entry", "reason"),
    [
        ("cursor", '{"command": "./here.sh"}', "a path relative to wherever the client runs"),
        ("cursor", '"npx server"', "is not an object"),
        ("cursor", '{"url": 7}', "`url` must be a string"),
        ("cursor", '{"command": "x", "envFile": ".env"}', "uses `envFile`"),
        ("cursor", '{"type": "sdk", "name": "x"}', "the transport 'sdk' is not one of"),
        ("cursor", '{"command": "x", "timeout": 1e999}', "is not valid JSON"),
        ("codex", 'command = "x"\nsince = 2026-01-01', "holds a date"),
        ("codex", 'command = "x"\n[mcp_servers.it.tools.rm]\napproval_mode = "prompt"', "`tools`"),
    ],
)
def test_a_server_that_toolfold_could_not_use_stays_with_the_reason(
    machine: Machine, client: str, entry: str, reason: str
) -> None:
    text = (
        f"[mcp_servers.it]\n{entry}\n"
        if client == "codex"
        else f'{{"mcpServers": {{"it": {entry}}}}}'
    )
    path = machine.write(client, text)

    ran = machine.run("install", client)
    kept = path.read_text()
    machine.run("uninstall", client)

    assert ran.status == 0
    assert "stays       it: " in ran.out
    assert reason in ran.out
    assert entry in kept
    assert path.read_text() == text
    assert not machine.servers_file.exists()


def test_a_full_disk_leaves_every_file_as_it_was(machine: Machine) -> None:
    path = machine.write("claude", realistic("claude", machine))
    before = machine.state()
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "from toolfold.entrypoints.cli import run_command\n"
        "sys.exit(run_command(['install', 'claude']))"
    )

    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        capture_output=True, text=True, env={"HOME": str(machine.home)}, timeout=50,
    )  # fmt: skip

    assert done.returncode == 2
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert machine.state() == before
    assert path.read_text() == realistic("claude", machine)


def test_broken_rules_of_an_earlier_install_stop_it_before_anything_is_changed(
    machine: Machine,
) -> None:
    kept = machine.home / ".config/toolfold/imported-rules.json"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"rules": 3}')

    ran = machine.run("install", "claude")

    assert ran.status == 2
    assert str(kept) in ran.err
    assert kept.read_text() == '{"rules": 3}'
    assert not machine.path("claude").exists()


def _read_only_file(path: Path) -> None:
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    path.chmod(0o444)


def _read_only_directory(path: Path) -> None:
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    path.parent.chmod(0o555)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere.json")


def _what_is_at(path: Path) -> tuple[int, ...]:
    found = path.lstat()
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (_read_only_file, "is read-only"),
        (_read_only_directory, "is read-only"),
        (Path.mkdir, "is not a regular file"),
        (_dangling, "is a link to nowhere.json, which is not there"),
        (os.mkfifo, "is not a regular file"),
    ],
)
def test_a_file_that_cannot_be_written_gets_a_clear_error(
    machine: Machine, spoil: Callable[[Path], None], complaint: str
) -> None:
    path = machine.path("cursor")
    path.parent.mkdir(parents=True)
    spoil(path)
    before = _what_is_at(path)

    ran = machine.run("install", "cursor")
    path.parent.chmod(0o755)

    assert ran.status == 2
    assert complaint in ran.err
    assert _what_is_at(path) == before
    assert not machine.servers_file.exists()
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


def test_a_file_where_a_directory_should_be_is_named(machine: Machine) -> None:
    (machine.home / ".cursor").write_text("not a directory")

    ran = machine.run("install", "cursor")

    assert ran.status == 2
    assert "is not a directory" in ran.err


def test_a_broken_file_of_toolfold_stops_install_before_anything_is_changed(
    machine: Machine,
) -> None:
    path = machine.write("cursor", client_files.CURSOR)
    machine.servers_file.parent.mkdir(parents=True)
    machine.servers_file.write_text("{ broken")

    ran = machine.run("install", "cursor")

    assert ran.status == 2
    assert str(machine.servers_file) in ran.err
    assert path.read_text() == client_files.CURSOR
    assert machine.servers_file.read_text() == "{ broken"


def test_of_all_clients_one_may_fail_and_the_others_go_on(machine: Machine) -> None:
    machine.write("cursor", "{ broken")
    codex = machine.write("codex", client_files.CODEX)

    ran = machine.run("install", "all")

    assert ran.status == 1
    assert "cursor (user)" in ran.err
    assert "claude (user): not in use here, skipped" in ran.out
    assert "vscode (user): not in use here, skipped" in ran.out
    assert "[mcp_servers.toolfold]" in codex.read_text()
    assert machine.path("cursor").read_text() == "{ broken"


def test_codex_servers_in_inline_tables_are_refused_and_nothing_is_touched(
    machine: Machine,
) -> None:
    text = '[mcp_servers]\ngithub = { command = "npx" }\n'
    path = machine.write("codex", text)

    ran = machine.run("install", "codex")

    assert ran.status == 2
    assert "inline tables or dotted keys" in ran.err
    assert path.read_text() == text
    assert not machine.servers_file.exists()


def test_what_another_program_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("as it was read")
    files = Files()
    was = files.read(path)
    path.write_text("written meanwhile")

    with pytest.raises(ConfigError, match="changed by another program just now"):
        files.write(path, "ours", was=was, private=False)

    assert path.read_text() == "written meanwhile"
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_a_crash_before_the_client_is_written_loses_nothing(machine: Machine) -> None:
    path = machine.write("cursor", client_files.CURSOR)
    machine.run("install", "cursor")
    # What a crash leaves: toolfold's file and the backup are written, the client's file is not.
    path.write_text(client_files.CURSOR)

    again = machine.run("install", "cursor")
    folded = path.read_text()
    machine.run("uninstall", "cursor")

    assert again.status == 0
    assert "github" in again.out
    assert '"toolfold"' in folded
    assert path.read_text() == client_files.CURSOR
    assert not machine.servers_file.exists()


def test_a_broken_backup_is_named_and_not_overwritten(machine: Machine) -> None:
    machine.write("cursor", client_files.CURSOR)
    machine.run("install", "cursor")
    [backup] = (machine.home / ".local/state/toolfold/backups").glob("*.json")
    backup.write_text('{"steps": 3}')

    ran = machine.run("uninstall", "cursor")

    assert ran.status == 2
    assert str(backup) in ran.err
    assert backup.read_text() == '{"steps": 3}'


def test_two_installs_at_once_do_not_undo_each_other(machine: Machine) -> None:
    machine.write("cursor", client_files.CURSOR)
    machine.write("codex", client_files.CODEX)
    machine.write("vscode", client_files.VSCODE)
    clients = ["cursor", "codex", "vscode"]
    running = [
        subprocess.Popen(
            [python(), "-m", "toolfold", "install", client],
            env={"HOME": str(machine.home)}, stdout=subprocess.DEVNULL, cwd=machine.project,
        )
        for client in clients
    ]  # fmt: skip

    assert [each.wait(50) for each in running] == [0, 0, 0]
    assert {"docs", "filesystem", "remote", "with.dot", "github"} <= set(machine.servers())
