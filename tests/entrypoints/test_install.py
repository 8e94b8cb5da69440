import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import client_files
import pytest

from toolfold.config.settings import load_config
from toolfold.entrypoints.cli import run_command
from toolfold.entrypoints.install.drift import drift


@dataclass
class Ran:
    status: int
    out: str
    err: str


@dataclass
class Machine:
    """A user's home with one project in it, and toolfold's command line."""

    home: Path
    project: Path
    run: Callable[..., Ran]

    @property
    def servers_file(self) -> Path:
        return self.home / ".config/toolfold/mcp.json"

    def servers(self, path: Path | None = None) -> dict[str, Any]:
        servers: dict[str, Any] = json.loads((path or self.servers_file).read_text())["mcpServers"]
        return servers

    def path(self, client: str, scope: str = "--user") -> Path:
        if scope == "--project":
            names = {
                "claude": ".mcp.json",
                "cursor": ".cursor/mcp.json",
                "vscode": ".vscode/mcp.json",
            }
            return self.project / names.get(client, ".codex/config.toml")
        names = {"claude": ".claude.json", "cursor": ".cursor/mcp.json"}
        names |= {"vscode": ".config/Code/User/mcp.json", "codex": ".codex/config.toml"}
        return self.home / names[client]

    def write(self, client: str, text: str, scope: str = "--user") -> Path:
        path = self.path(client, scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def state(self) -> dict[str, tuple[bytes, int, int]]:
        """Every file there is, with what says that nobody wrote it anew; locks do not count."""
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and path.suffix != ".lock"
        }


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


CLIENTS = ["claude", "cursor", "vscode", "codex"]


def realistic(client: str, machine: Machine) -> str:
    texts = {
        "cursor": client_files.CURSOR,
        "vscode": client_files.VSCODE,
        "codex": client_files.CODEX,
    }
    return texts.get(client) or client_files.claude_user(machine.project)


def variants(text: str) -> dict[str, str]:
    return {
        "as it is": text,
        "windows": text.replace("\n", "\r\n"),
        "marked": "\ufeff" + text,
        "not ended": text.rstrip("\n"),
    }


@pytest.mark.parametrize("variant", variants(""))
@pytest.mark.parametrize("client", CLIENTS)
def test_what_install_did_uninstall_undoes_to_the_byte(
    machine: Machine, client: str, variant: str
) -> None:
    text = variants(realistic(client, machine))[variant]
    path = machine.write(client, text)
    path.chmod(0o640)

    installed = machine.run("install", client)
    folded = path.read_bytes().decode()
    undone = machine.run("uninstall", client)

    assert (installed.status, installed.err, undone.status, undone.err) == (0, "", 0, "")
    assert "ghp_hidden" not in folded
    assert '"mcp"' in folded
    assert path.read_bytes().decode() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not machine.servers_file.exists()
    assert list((machine.home / ".local/state/toolfold/backups").iterdir()) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_installing_twice_changes_nothing(machine: Machine, client: str) -> None:
    machine.write(client, realistic(client, machine))
    machine.run("install", client)
    before = machine.state()

    again = machine.run("install", client)

    assert again.status == 0
    assert "nothing to change" in again.out
    assert machine.state() == before


@pytest.mark.parametrize("scope", ["--user", "--project"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_without_a_file_gets_one_and_loses_it_again(
    machine: Machine, client: str, scope: str
) -> None:
    before = machine.state()

    installed = machine.run("install", client, scope)
    path = machine.path(client, scope)
    text = path.read_text()
    machine.run("uninstall", client, scope)

    assert installed.status == 0
    assert str(path) in installed.out
    assert "toolfold" in text
    assert len(text.splitlines()) > 1
    assert machine.state() == before


def test_the_servers_of_claude_code_become_those_of_toolfold(machine: Machine) -> None:
    machine.write("claude", realistic("claude", machine))

    ran = machine.run("install", "claude")

    left = json.loads(machine.path("claude").read_text())
    assert set(left["mcpServers"]) == {"toolfold", "live", "helped"}
    assert left["mcpServers"]["toolfold"]["type"] == "stdio"
    assert left["mcpServers"]["toolfold"]["args"] == ["mcp"]
    assert left["projects"][str(machine.project)]["mcpServers"] == {}
    assert set(machine.servers()) == {"github", "linear", "sentry", "notes"}
    assert machine.servers()["github"]["env"]["HOST"] == "${GITHUB_HOST:-github.com}"
    assert machine.servers()["notes"]["command"] == str(machine.project / "notes.sh")
    assert machine.servers()["notes"]["cwd"] == str(machine.project)
    assert stat.S_IMODE(machine.servers_file.stat().st_mode) == 0o600
    assert [server.name for server in load_config().servers] == [
        "github",
        "linear",
        "notes",
        "sentry",
    ]
    assert "live: the transport 'ws' is not one of" in ran.out
    assert "helped: uses `headersHelper`" in ran.out
    assert "toolfold login linear" in ran.out
    assert "login sentry" not in ran.out


def test_what_only_the_editor_can_fill_in_stays_there(machine: Machine) -> None:
    machine.write("vscode", client_files.VSCODE)
    machine.write("cursor", client_files.CURSOR)

    ran = machine.run("install", "vscode", "cursor")

    assert ran.status == 0
    assert "asked: uses ${input:token}, which only vscode can fill in" in ran.out
    assert "here: uses ${workspaceFolder}, which only cursor can fill in" in ran.out
    vscode, cursor = machine.path("vscode").read_text(), machine.path("cursor").read_text()
    assert '"T": "${input:token}"' in vscode
    assert '"toolfold": {' in vscode
    assert "${workspaceFolder}/server.js" in cursor
    assert set(machine.servers()) == {"filesystem", "remote", "github", "docs"}
    assert all(c in cursor for c in ("// the issue tracker", "// keep this one", "/* remote */"))
    assert '"other": [1, 2,], // untouched' in cursor


def test_servers_of_codex_are_translated(machine: Machine) -> None:
    machine.write("codex", client_files.CODEX)

    ran = machine.run("install", "codex")

    assert machine.servers() == {
        "github": {
            "command": "npx",
            "args": ["-y", "server-github"],
            "env": {"GITHUB_TOKEN": "ghp_hidden"},
        },
        "with.dot": {
            "type": "http",
            "url": "https://dot.example.org/mcp",
            "headers": {
                "X-Region": "hidden-region",
                "X-Team": "${TEAM}",
                "Authorization": "Bearer ${DOT_TOKEN}",
            },
            "timeout_s": 90.0,
        },
    }
    assert "limited: limits its tools by `enabled_tools`" in ran.out
    assert "login" not in ran.out
    text = machine.path("codex").read_text()
    assert "[mcp_servers.toolfold]" in text
    assert (
        text.index("[profiles.fast]") < text.index("[mcp_servers.toolfold]") < text.index("[tools]")
    )
    assert "# the end\n[projects." in text


def test_the_entry_names_toolfold_only_if_the_path_leads_to_this_one(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(sys.executable).parent / "toolfold"
    machine.run("install", "claude")
    elsewhere = json.loads(machine.path("claude").read_text())["mcpServers"]["toolfold"]
    machine.run("uninstall", "claude")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/toolfold").symlink_to(script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machine.run("install", "claude")
    here = json.loads(machine.path("claude").read_text())["mcpServers"]["toolfold"]

    assert elsewhere == {"type": "stdio", "command": str(script), "args": ["mcp"]}
    assert here == {"type": "stdio", "command": "toolfold", "args": ["mcp"]}


def test_a_toolfold_that_somebody_wrote_by_hand_is_recognised(machine: Machine) -> None:
    text = '{"mcpServers": {"tf": {"command": "uvx", "args": ["toolfold", "mcp"]}}}'
    path = machine.write("cursor", text)

    machine.run("install", "cursor")
    kept = path.read_text()
    removed = machine.run("uninstall", "cursor")

    assert kept == text
    assert removed.status == 0
    assert json.loads(path.read_text()) == {"mcpServers": {}}


def test_with_keep_the_servers_stay_and_are_not_taken_over(machine: Machine) -> None:
    path = machine.write("cursor", client_files.CURSOR)

    machine.run("install", "cursor", "--keep")
    kept = path.read_text()
    drifted = drift(load_config().directories, {"HOME": str(machine.home)}, machine.project)
    synced = machine.run("sync")
    machine.run("uninstall", "cursor")

    assert all(name in kept for name in ('"github"', '"docs"', '"here"', '"toolfold"'))
    assert not machine.servers_file.exists()
    assert drifted == []
    assert "nothing to change" in synced.out
    assert path.read_text() == client_files.CURSOR


def test_another_server_of_the_same_name_is_taken_over_under_a_second_name(
    machine: Machine,
) -> None:
    machine.servers_file.parent.mkdir(parents=True)
    mine = '{\n  // mine\n  "mcpServers": { "github": { "command": "my-own" } }\n}\n'
    machine.servers_file.write_text(mine)
    machine.write("cursor", '{"mcpServers": {"github": {"command": "a"}, "x": {"command": "b"}}}')
    machine.write("codex", '[mcp_servers.github]\ncommand = "a"\n[mcp_servers.x]\ncommand = "b"\n')

    cursor = machine.run("install", "cursor")
    codex = machine.run("install", "codex")
    servers = machine.servers_file.read_text()
    first = machine.run("uninstall", "cursor")
    between = machine.servers_file.read_text()
    machine.run("uninstall", "codex")

    assert "github (a) as github_2: another server has that name there" in cursor.out
    assert "github (a) as github_2" in codex.out
    assert servers.count("github_2") == 1
    assert servers.count('"x"') == 1
    assert "codex (user) uses it too" in first.out
    assert "github_2" in between
    assert machine.servers_file.read_text() == mine


def test_a_dry_run_shows_the_change_without_secrets_and_makes_none(machine: Machine) -> None:
    machine.write("claude", realistic("claude", machine))
    machine.write("codex", client_files.CODEX)
    before = machine.state()

    ran = machine.run("install", "all", "--dry-run")

    assert ran.status == 0
    assert machine.state() == before
    assert not (machine.home / ".local").exists()
    assert '+    "toolfold": {' in ran.out
    assert "+[mcp_servers.toolfold]" in ran.out
    assert "github (npx)" in ran.out
    for secret in ("ghp_hidden", "sk-in-args", "hidden-bearer", "hidden-region", "sk-ant-hidden"):
        assert secret not in ran.out
    assert "${GITHUB_HOST:-github.com}" in ran.out
    assert "Bearer ${DOT_TOKEN}" in ran.out


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
    lines = [line.strip().rstrip(",") for line in text.splitlines()]
    for line in original.splitlines():
        assert line.strip().rstrip(",") in lines
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

    assert "`toolfold install cursor` puts it back" in gone[0]
    assert "is not valid JSON" in broken[0]


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


def test_the_servers_of_a_project_go_to_the_project(machine: Machine) -> None:
    path = machine.write("claude", client_files.CLAUDE_PROJECT, "--project")

    ran = machine.run("install", "claude", "--project")
    servers = machine.servers(machine.project / ".toolfold/mcp.json")
    machine.run("uninstall", "claude", "--project")

    assert "toolfold trust" in ran.out
    assert "toolfold login search" in ran.out
    assert servers["db"] == {"command": "./bin/db", "args": ["--url", "${DB_URL}"]}
    assert set(servers) == {"db", "search"}
    assert not machine.servers_file.exists()
    assert path.read_text() == client_files.CLAUDE_PROJECT


def test_rules_about_tools_of_servers_are_kept_for_later(machine: Machine) -> None:
    settings = machine.home / ".claude/settings.json"
    local = machine.project / ".claude/settings.local.json"
    for path in (settings, local):
        path.parent.mkdir(parents=True)
    rules = {"deny": ["mcp__github__delete_repo", "Bash(rm:*)"], "allow": ["mcp__toolfold"]}
    settings.write_text(json.dumps({"permissions": rules}))
    local.write_text('{"permissions": {"ask": ["mcp__slack"]}} // mine')
    (machine.project / ".claude/settings.json").write_text("{ broken")

    ran = machine.run("install", "claude")
    kept = machine.home / ".config/toolfold/imported-rules.json"
    again = machine.run("install", "claude")

    assert json.loads(kept.read_text())["rules"] == [
        {"source": str(settings), "list": "deny", "rule": "mcp__github__delete_repo"},
        {"source": str(local), "list": "ask", "rule": "mcp__slack"},
    ]
    assert "2 for MCP tools in the client's settings are kept in" in ran.out
    assert str(kept) in ran.out
    assert "not read" in ran.out
    assert "are kept in" not in again.out
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


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


def _read_only_file(path: Path) -> None:
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    path.chmod(0o444)


def _read_only_directory(path: Path) -> None:
    path.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    path.parent.chmod(0o555)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere.json")


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
    before = path.lstat()

    ran = machine.run("install", "cursor")
    path.parent.chmod(0o755)

    assert ran.status == 2
    assert complaint in ran.err
    assert path.lstat() == before
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


def test_a_link_is_followed_and_stays_a_link(machine: Machine) -> None:
    real = machine.home / "dotfiles/cursor.json"
    real.parent.mkdir()
    real.write_text(client_files.CURSOR)
    path = machine.path("cursor")
    path.parent.mkdir()
    path.symlink_to(real)

    machine.run("install", "cursor")
    folded = real.read_text()
    machine.run("uninstall", "cursor")

    assert path.is_symlink()
    assert '"toolfold"' in folded
    assert real.read_text() == client_files.CURSOR


def test_who_names_no_client_is_told_which_there_are(machine: Machine) -> None:
    machine.write("codex", client_files.CODEX)

    none = machine.run("install")
    wrong = machine.run("install", "emacs")
    nothing = machine.run("install", "all", "--project")

    assert (none.status, wrong.status, nothing.status) == (2, 2, 2)
    assert "claude, cursor, vscode, codex, or all" in none.err
    assert f"codex ({machine.path('codex')})" in none.err
    assert "No client is named 'emacs'" in wrong.err
    assert "None of these clients is in use here" in nothing.err


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
    [backup] = (machine.home / ".local/state/toolfold/backups").iterdir()
    backup.write_text('{"steps": 3}')

    ran = machine.run("uninstall", "cursor")

    assert ran.status == 2
    assert str(backup) in ran.err
    assert backup.read_text() == '{"steps": 3}'


def test_a_backup_can_be_read_by_nobody_else(machine: Machine) -> None:
    machine.write("claude", realistic("claude", machine))
    machine.run("install", "claude")

    [backup] = (machine.home / ".local/state/toolfold/backups").iterdir()

    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700
    assert json.loads(backup.read_text())["steps"][0]["before"] == realistic("claude", machine)


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


def test_claude_code_can_be_told_to_keep_its_files_elsewhere(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))

    ran = machine.run("install", "claude")

    assert ran.status == 0
    assert "toolfold" in (tmp_path / "elsewhere/.claude.json").read_text()
    assert not machine.path("claude").exists()


@pytest.mark.parametrize("scope", [(), ("--project",)])
def test_init_writes_files_that_work_and_never_overwrites(
    machine: Machine, scope: tuple[str, ...]
) -> None:
    folder = machine.project / ".toolfold" if scope else machine.servers_file.parent
    first = machine.run("init", *scope)
    config = load_config()
    (folder / "mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    second = machine.run("init", *scope)

    assert first.status == second.status == 0
    assert config.faults == ()
    assert folder / "config.toml" in config.sources
    assert set(machine.servers(folder / "mcp.json")) == {"mine"}
    assert "left as it is" in second.out


def test_every_setting_in_the_starter_stands_at_its_default(machine: Machine) -> None:
    machine.run("init")
    path = machine.servers_file.parent / "config.toml"
    defaults = load_config().settings
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.removeprefix("# ") for line in lines[1:]))

    config = load_config()

    assert config.faults == ()
    assert config.settings == defaults
    assert "calls = 10000" in path.read_text()


def test_install_loads_neither_the_sdk_nor_anything_heavy(machine: Machine) -> None:
    code = (
        "import sys, toolfold.__main__ as m\n"
        "sys.argv = ['toolfold', 'install', 'cursor']\n"
        "status = m.main()\n"
        "heavy = {'mcp', 'pydantic', 'anyio', 'asyncio', 'numpy', 'pydantic_monty'}\n"
        "print('loaded:', status, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, env={"HOME": str(machine.home)}, timeout=50,
    )  # fmt: skip

    assert done.stdout.splitlines()[-1] == "loaded: 0 []"


def test_two_installs_at_once_do_not_undo_each_other(machine: Machine) -> None:
    machine.write("cursor", client_files.CURSOR)
    machine.write("codex", client_files.CODEX)
    machine.write("vscode", client_files.VSCODE)
    clients = ["cursor", "codex", "vscode"]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "toolfold", "install", client],
            env={"HOME": str(machine.home)}, stdout=subprocess.DEVNULL, cwd=machine.project,
        )
        for client in clients
    ]  # fmt: skip

    assert [each.wait(50) for each in running] == [0, 0, 0]
    assert {"docs", "filesystem", "remote", "with.dot", "github"} <= set(machine.servers())
