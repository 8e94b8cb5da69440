"""Install and uninstall: what moves, what stays, and that all can be undone."""

import json
import stat
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import client_files
import pytest
from machine import CLIENTS, Machine, realistic

from toolfold.config.config import load_config
from toolfold.entrypoints.install.drift import drift
from toolfold.entrypoints.install.own import own_command


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


def test_codex_passes_on_the_variables_that_the_servers_need(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.home / "cache"))
    path = machine.write("codex", client_files.CODEX)

    installed = machine.run("install", "codex")
    first = tomllib.loads(path.read_text())["mcp_servers"]["toolfold"]["env_vars"]
    with path.open("a") as file:
        file.write('[mcp_servers.late]\ncommand = "late"\nenv_vars = ["LATE"]\n')
    machine.run("sync")
    second = tomllib.loads(path.read_text())["mcp_servers"]["toolfold"]["env_vars"]
    machine.run("uninstall", "codex")

    assert first == ["XDG_CACHE_HOME", "DOT_TOKEN", "TEAM"]
    assert "passes on   XDG_CACHE_HOME, DOT_TOKEN, TEAM" in installed.out
    assert second == [*first, "LATE"]
    assert "toolfold" not in path.read_text()
    assert set(tomllib.loads(path.read_text())["mcp_servers"]) == {
        *("github", "with.dot", "limited", "late")
    }


def test_a_server_written_by_hand_stays_however_many_clients_had_it_too(machine: Machine) -> None:
    machine.servers_file.parent.mkdir(parents=True)
    machine.servers_file.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    machine.write("cursor", '{"mcpServers": {"a": {"command": "x"}}}')
    machine.write("codex", '[mcp_servers.a]\ncommand = "x"\n')
    machine.run("install", "cursor", "codex")

    machine.run("uninstall", "cursor")
    machine.run("uninstall", "codex")

    assert machine.servers_file.read_text() == '{"mcpServers": {"a": {"command": "x"}}}'


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
    assert "${GITHUB_HOST:-•••}" in ran.out
    assert "Bearer ${DOT_TOKEN}" in ran.out


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


def test_rules_about_tools_of_servers_are_kept(machine: Machine) -> None:
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

    deny, ask = json.loads(kept.read_text())["rules"]
    assert deny == {
        "source": str(settings),
        "scope": "user",
        "list": "deny",
        "rule": "mcp__github__delete_repo",
    }
    assert ask == {"source": str(local), "scope": "project", "list": "ask", "rule": "mcp__slack"}
    assert "2 of the client that deny or ask hold here, too" in ran.out
    assert str(kept) in ran.out
    assert "not read" in ran.out
    assert "hold here, too" not in again.out
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_rules_of_the_client_hold_at_once_and_go_when_it_has_its_servers_back(
    machine: Machine,
) -> None:
    machine.write("claude", '{"mcpServers": {"github": {"command": "gh"}}}')
    settings = machine.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    rules = {"deny": ["mcp__github__delete_repo"], "ask": ["mcp__github__fork"]}
    settings.write_text(json.dumps({"permissions": rules}))

    machine.run("install", "claude")
    held = json.loads(machine.run("policy", "--json").out)
    back = machine.run("uninstall", "claude")
    after = machine.run("policy", "--json").out

    ours = [(each["action"], each["rule"]) for each in held["rules"] if "client" in each["from"]]
    assert ours == [("deny", "github.delete_repo"), ("ask", "github.fork")]
    assert "2 of the client hold only there again" in back.out
    assert "github" not in after


def test_a_server_that_is_called_toolfold_and_is_another_keeps_its_name(machine: Machine) -> None:
    text = '{"mcpServers": {"toolfold": {"command": "other"}}}'
    path = machine.write("cursor", text)

    machine.run("install", "cursor", "--keep")
    kept = json.loads(path.read_text())["mcpServers"]
    machine.run("uninstall", "cursor")
    machine.run("install", "cursor")
    moved = json.loads(path.read_text())["mcpServers"]

    assert list(kept) == ["toolfold", "toolfold_2"]
    assert kept["toolfold"] == {"command": "other"}
    assert list(moved) == ["toolfold"]
    assert moved["toolfold"]["args"] == ["mcp"]
    assert machine.servers() == {"toolfold": {"command": "other"}}


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
    assert "None of these clients was found here" in nothing.err


def test_claude_code_can_be_told_to_keep_its_files_elsewhere(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))

    ran = machine.run("install", "claude")

    assert ran.status == 0
    assert "toolfold" in (tmp_path / "elsewhere/.claude.json").read_text()
    assert not machine.path("claude").exists()


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


def test_who_uninstalls_twice_is_told_that_nothing_changed(machine: Machine) -> None:
    machine.run("install", "cursor")
    first = machine.run("uninstall", "cursor")
    second = machine.run("uninstall", "cursor")

    assert "Done. Restart your clients to see it." in first.out
    assert "Nothing changed." in second.out
    assert "Done." not in second.out
    assert not machine.path("cursor").parent.exists()


def test_a_purge_that_cannot_ask_changes_no_client(machine: Machine) -> None:
    path = machine.write("cursor", json.dumps({"mcpServers": {"a": {"command": "true"}}}))
    assert machine.run("install", "cursor").status == 0
    installed = path.read_text()

    refused = machine.run("uninstall", "all", "--purge")

    assert refused.status == 2
    assert "pass --yes" in refused.err
    assert path.read_text() == installed


def test_purge_deletes_what_restores_kept_aside_and_a_dry_run_lists_it(machine: Machine) -> None:
    data = machine.home / ".local/share/toolfold"
    aside = [
        data.with_name("toolfold.before-restore-20261116-101500"),
        data.with_name("toolfold.restore-0a1b2c3d"),
        machine.home / ".config/toolfold.before-restore-20261116-101500",
    ]
    others = [data.with_name("toolfold.before-restore-mine"), data.with_name("toolfold-notes")]
    for path in (data, *aside, *others):
        path.mkdir(parents=True)
        (path / "vaults.key").write_text("secret")

    pretended = machine.run("uninstall", "all", "--purge", "--dry-run")
    there = [path.exists() for path in (data, *aside)]
    purged = machine.run("uninstall", "all", "--purge", "--yes")

    assert (pretended.status, purged.status, purged.err) == (0, 0, "")
    for path in (data, *aside):
        assert f"  {path}\n" in pretended.out
        assert f"  {path}\n" in purged.out
        assert not path.exists()
    assert all(there)
    assert all(path.exists() for path in others)


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="This is no virtual environment.")
def test_a_client_is_told_where_a_toolfold_of_a_virtual_environment_is(tmp_path: Path) -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    link = tmp_path / "toolfold"
    link.symlink_to(scripts / "toolfold")

    assert own_command({"PATH": str(scripts)}) == [str(scripts / "toolfold")]
    assert own_command({"PATH": str(tmp_path)}) == ["toolfold"]
    assert own_command({"PATH": "/nowhere"}) == [str(scripts / "toolfold")]
