"""`toolfold install claude --hooks`: what it does to the settings of Claude Code."""

import json
from pathlib import Path

import pytest
from machine import Machine

from toolfold.entrypoints.install.approval import has_plugin

EVENTS = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PreCompact", "SessionEnd"]
SETTINGS = """\
{
    // mine
    "model": "opus",
    "hooks": {
        "SessionStart": [
            { "hooks": [{ "type": "command", "command": "echo hello" }] }   // greet
        ],
        "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }],
    },
    "permissions": { "allow": ["Bash(ls)"] },
}
"""


def settings(machine: Machine, scope: str = "--user") -> Path:
    if scope == "--project":
        return machine.project / ".claude/settings.local.json"
    return machine.home / ".claude/settings.json"


def written(path: Path) -> dict[str, list[dict[str, list[dict[str, str]]]]]:
    found: dict[str, list[dict[str, list[dict[str, str]]]]] = json.loads(path.read_text())["hooks"]
    return found


@pytest.mark.parametrize("scope", ["--user", "--project"])
def test_hooks_are_put_where_there_are_no_settings_and_taken_out_again(
    machine: Machine, scope: str
) -> None:
    before = machine.state()

    installed = machine.run("install", "claude", scope, "--hooks")
    path = settings(machine, scope)
    hooks = written(path)
    undone = machine.run("uninstall", "claude", scope)

    assert (installed.status, installed.err, undone.status, undone.err) == (0, "", 0, "")
    assert f"adds        5 session hooks: {path}" in installed.out
    assert list(hooks) == EVENTS
    commands = [hooks[event][0]["hooks"][0]["command"] for event in EVENTS]
    assert [command.rpartition("toolfold hook ")[2] for command in commands] == [
        "session-start",
        "prompt",
        "pre-tool-use",
        "pre-compact",
        "session-end",
    ]
    assert machine.state() == before
    assert not path.parent.exists()


def test_a_directory_that_was_there_or_is_in_use_stays(machine: Machine) -> None:
    path = settings(machine)
    path.parent.mkdir()
    machine.run("install", "claude", "--hooks")
    machine.run("uninstall", "claude")
    was_there = path.parent.is_dir()
    path.parent.rmdir()
    machine.run("install", "claude", "--hooks")
    (path.parent / "history").write_text("of the client")
    machine.run("uninstall", "claude")

    assert was_there
    assert [each.name for each in path.parent.iterdir()] == ["history"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_hooks_of_others_stay_and_uninstall_restores_every_byte(
    machine: Machine, newline: str
) -> None:
    path = settings(machine)
    path.parent.mkdir()
    text = SETTINGS.replace("\n", newline).encode()
    path.write_bytes(text)

    machine.run("install", "claude", "--hooks")
    folded = path.read_bytes().decode()
    again = machine.run("install", "claude", "--hooks")

    assert "echo hello" in folded
    assert "say done" in folded
    assert folded.count("toolfold hook") == 5
    assert "// mine" in folded
    assert '"permissions": { "allow": ["Bash(ls)"] },' in folded
    assert "hooks       nothing to change" in again.out
    assert path.read_bytes().decode() == folded
    machine.run("uninstall", "claude")
    assert path.read_bytes() == text


def test_what_was_changed_since_stays(machine: Machine) -> None:
    path = settings(machine)
    path.parent.mkdir()
    path.write_text(SETTINGS)
    machine.run("install", "claude", "--hooks")
    path.write_text(path.read_text().replace('"opus"', '"sonnet"'))

    machine.run("uninstall", "claude")

    text = path.read_text()
    assert '"sonnet"' in text
    assert "echo hello" in text
    assert "toolfold" not in text
    assert "SessionEnd" not in text


def test_without_the_option_settings_are_left_alone(machine: Machine) -> None:
    machine.run("install", "claude")

    assert not settings(machine).exists()


def test_a_dry_run_shows_the_hooks_and_changes_nothing(machine: Machine) -> None:
    before = machine.state()

    ran = machine.run("install", "claude", "--hooks", "--dry-run")

    assert "5 session hooks" in ran.out
    assert "SessionStart" in ran.out
    assert 'toolfold hook session-start"' in ran.out
    assert '"timeout": 15' in ran.out
    assert "•••" not in ran.out
    assert machine.state() == before


def test_a_dry_run_masks_the_hooks_of_others(machine: Machine) -> None:
    settings(machine).parent.mkdir(parents=True, exist_ok=True)
    settings(machine).write_text(SETTINGS)

    ran = machine.run("install", "claude", "--hooks", "--dry-run")

    assert 'toolfold hook session-start"' in ran.out
    assert "echo hello" not in ran.out


@pytest.mark.parametrize(
    "text", ['{"hooks": {"SessionStart": 5}}', '{"hooks": [1]}', "{not json", '{"a": 1, "a": 2}']
)
def test_settings_that_cannot_be_edited_are_named_and_left_alone(
    machine: Machine, text: str
) -> None:
    path = settings(machine)
    path.parent.mkdir()
    path.write_text(text)
    before = machine.state()

    ran = machine.run("install", "claude", "--hooks")

    assert ran.status == 2
    assert str(path) in ran.err
    assert machine.state() == before


def test_other_clients_have_no_hooks_and_say_so(machine: Machine) -> None:
    ran = machine.run("install", "cursor", "--hooks")

    assert ran.status == 0
    assert "toolfold has hooks for claude alone" in ran.out


def test_the_client_waits_longer_than_hooks_do(machine: Machine) -> None:
    def timeouts() -> list[int]:
        machine.run("install", "claude", "--hooks")
        hooks = json.loads(settings(machine).read_text())["hooks"]
        return [hooks[event][-1]["hooks"][0]["timeout"] for event in EVENTS]

    usual = timeouts()
    config = machine.home / ".config/toolfold/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[hooks]\ntimeout_s = 60.5\nprompt_timeout_s = 20\n")

    assert usual == [15, 5, 5, 15, 5]
    assert timeouts() == [63, 22, 22, 63, 5]


def test_install_and_policy_say_who_asks_about_what_changes_something(machine: Machine) -> None:
    (machine.home / ".claude.json").write_text('{"mcpServers": {"box": {"command": "box"}}}')

    plain = machine.run("install", "claude")
    shown = machine.run("policy")
    hooked = machine.run("install", "claude", "--hooks")
    then = machine.run("policy")
    config = machine.home / ".config/toolfold/config.toml"
    config.write_text('approvals = "always"\n')
    always = machine.run("policy")

    assert "approvals   it asks you before destructive calls if it can show questions" in plain.out
    assert "`toolfold install claude --hooks` makes it ask before each program" in shown.out
    assert "approvals   its hook asks you before each program that changes something" in hooked.out
    assert "claude: its hook asks you before each program that changes something." in then.out
    assert 'the run waits for you (approvals = "always")' in always.out


@pytest.mark.parametrize(
    ("settings_texts", "expected"),
    [
        (['{"enabledPlugins": {"toolfold@toolfold": true}, /* mine */}'], True),
        (['{"enabledPlugins": {"toolfold@a": true}}', "{}"], True),
        (['{"enabledPlugins": {"toolfold@a": true}}', '{"enabledPlugins": {"toolfold@a": 0}}'],
         False),
        (["{}", '{"enabledPlugins": {"toolfold@a": true}}'], True),
        (['{"enabledPlugins": {"toolfold-notes@a": true}}'], False),
        (['{"enabledPlugins": ["toolfold@a"]}', "[]", "{", "[" * 100_000], False),
        ([], False),
    ],
)  # fmt: skip
def test_hooks_of_the_plugin_count_as_hooks(settings_texts: list[str], expected: bool) -> None:
    assert has_plugin(settings_texts) is expected


def test_policy_and_doctor_know_of_the_plugin(machine: Machine) -> None:
    (machine.home / ".claude.json").write_text("{}")
    settings(machine).parent.mkdir(exist_ok=True)
    settings(machine).write_text('{"enabledPlugins": {"toolfold@toolfold": true}}')

    shown = machine.run("policy")

    assert "claude: its hook asks you before each program that changes something." in shown.out
