"""A command-line program, called from guest code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import MakeApp

from toolfold.catalog.program import command_words
from toolfold.config.cli_entry import read_commands
from toolfold.config.serverfile import ServerContext, outline_servers, parse_servers
from toolfold.config.servers import CliArgument, CliCommand, ServerFault
from toolfold.errors import BadCall, ConfigError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its programs are others")

GIT: dict[str, Any] = {
    "cli": "git",
    "commands": [
        {
            "name": "log",
            "args": ["log", "--format=%s"],
            "description": "Subjects of commits.",
            "read_only": True,
            "end_of_options": True,
            "arguments": [
                {"name": "count", "option": "-n", "type": "integer"},
                {"name": "author", "option": "--author"},
                {"name": "reverse", "option": "--reverse", "type": "boolean"},
                {"name": "paths", "list": True, "description": "only what changed these"},
            ],
        },
        {
            "name": "commit",
            "args": ["commit", "--allow-empty", "--quiet"],
            "arguments": [{"name": "message", "option": "-m", "required": True}],
        },
        {
            "name": "show",
            "args": ["show"],
            "read_only": True,
            "arguments": [{"name": "what", "required": True}],
        },
    ],
}


def program(name: str, *arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the entry of a program with one command."""
    command = {"name": "run", "read_only": True, "arguments": list(arguments)}
    return {"cli": name, "commands": [command | more.pop("command", {})], **more}


def shell(script: str, **more: Any) -> dict[str, Any]:
    """Return the entry of a program that a test needs: its words are its own."""
    return program("/bin/sh", command={"args": ["-c", script]}, **more)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed.")
    place = tmp_path / "repository"
    place.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for words in (
        ("init", "--quiet"),
        ("config", "user.name", "Ada"),
        ("config", "user.email", "ada@example.org"),
        ("commit", "--quiet", "--allow-empty", "-m", "first"),
        ("commit", "--quiet", "--allow-empty", "-m", "second; touch pwned $(touch pwned)"),
    ):
        subprocess.run(["git", *words], cwd=place, env=environ, check=True)
    return place


async def test_declared_commands_are_functions(
    running: MakeApp, repository: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text('[[policy]]\naction = "allow"\n')
    entry = {**GIT, "cwd": str(repository)}
    async with running({"git": entry}) as app:
        result = await app.run(
            "import git\n"
            "git.commit(message='third')\n"
            "print(git.log(count=2, author='Ada').split('\\n')[0])\n"
            "print(git.log(reverse=True).split('\\n')[0])\n"
            "print(repr(git.log(author='Nobody')))"
        )
        tools = app.app.catalog.functions("git")
        [status] = app.app.catalog.statuses()
    assert result.success, result.text
    assert result.output.splitlines() == ["third", "first", "''"]
    assert tools["log"].listed.read_only
    assert not tools["commit"].listed.read_only
    assert (status.protocol, status.tools) == ("command line", 3)


async def test_no_value_becomes_an_option_or_a_command(running: MakeApp, repository: Path) -> None:
    entry = {**GIT, "cwd": str(repository)}
    async with running({"git": entry}) as app:
        option = await app.run("import git\ngit.show(what='--output=pwned')")
        paths = ["--output=pwned", "; touch pwned"]
        words = await app.run(f"import git\nprint(git.log(paths={paths}))")
        author = await app.run("import git\nprint(git.log(author='--output=pwned'))")
        unknown = await app.run("import git\ngit.log(exec='touch pwned')")
    assert "cannot begin with `-`" in option.text
    assert words.success, words.text
    assert author.success, author.text
    assert not unknown.success
    assert [each.name for each in repository.iterdir()] == [".git"]


async def test_words_reach_a_program_as_they_are(running: MakeApp) -> None:
    given = {"name": "words", "list": True}
    entry = program("printf", given, command={"args": ["[%s]"]})
    async with running({"printf": entry}) as app:
        result = await app.run(
            "import printf\nprint(printf.run(words=['$HOME', '`id`', 'a b', '\\'', '*', '', 'é']))"
        )
    assert result.output == "[$HOME][`id`][a b]['][*][][é]\n", result.text


async def test_a_program_that_fails_says_why(running: MakeApp, repository: Path) -> None:
    async with running({"git": {**GIT, "cwd": str(repository)}}) as app:
        result = await app.run(
            "import git\ntry:\n    git.show(what='nowhere')\n"
            "except RuntimeError as error:\n    print(error)"
        )
    assert "show ended with status 128" in result.output
    assert "nowhere" in result.output


async def test_a_program_that_is_not_there_is_named(running: MakeApp) -> None:
    async with running({"gone": program("no-such-program-here")}) as app:
        result = await app.run("import gone\ngone.run()")
        await app.app.catalog.learn(fresh=True)
        [status] = app.app.catalog.statuses()
    assert "no-such-program-here" in result.text
    assert status.fault == "there is no program 'no-such-program-here' in the PATH"


async def test_a_program_has_little_of_our_environment_and_no_input(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "hunter2")
    entry = shell("env; cat; echo end", env={"API_TOKEN": "s3cret-value"})
    async with running({"sh": entry}) as app:
        result = await app.run("import sh\nprint(sh.run())")
    assert "hunter2" not in result.output
    assert "API_TOKEN=" in result.output
    assert "s3cret-value" not in result.output
    assert "end" in result.output


async def test_a_program_that_takes_too_long_is_ended_with_what_it_started(
    running: MakeApp, tmp_path: Path
) -> None:
    entry = shell(f"sleep 1000 & echo $! > {tmp_path}/pid; wait", timeout_s=1)
    async with running({"sh": entry}) as app:
        result = await app.run("import sh\nsh.run()")
    assert "did not end within 1 s" in result.text
    await gone(int((tmp_path / "pid").read_text()))


async def test_a_program_that_leaves_something_behind_does_not_hold_up_its_answer(
    running: MakeApp, tmp_path: Path
) -> None:
    entry = shell(f"(sleep 1000 >&- 2>&- & echo $! > {tmp_path}/pid); echo done")
    async with running({"sh": entry}) as app:
        result = await app.run("import sh\nprint(sh.run())")
    assert "done" in result.output
    await gone(int((tmp_path / "pid").read_text()))


async def gone(pid: int) -> None:
    with anyio.fail_after(60):
        while Path(f"/proc/{pid}").exists():
            await anyio.sleep(0.02)


async def test_what_is_long_is_kept_in_a_file_and_what_is_endless_is_ended(
    running: MakeApp,
) -> None:
    servers = {"long": shell("yes | head -c 6000000"), "endless": shell("yes")}
    async with running(servers, limits__large_result_bytes=10_000_000) as app:
        long = await app.run("import long\nprint(str(long.run())[:200])")
        endless = await app.run("import endless\nendless.run()")
    assert "/workspace/" in long.output, long.text
    assert "more than 10,000,000 bytes" in endless.text


async def test_what_a_rule_denies_is_not_run(running: MakeApp, home: Path, tmp_path: Path) -> None:
    (home / "config").mkdir(parents=True)
    rule = '[[policy]]\naction = "deny"\nread_only = false\n'
    (home / "config" / "policy.toml").write_text(rule)
    entry = shell(f"touch {tmp_path}/done")
    entry["commands"][0]["read_only"] = False
    async with running({"sh": entry}) as app:
        result = await app.run("import sh\nsh.run()")
    assert "a rule forbids it" in result.text
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("value", ["-x", "--", "-", "--help", "-0"])
def test_a_positional_value_is_never_an_option(value: str) -> None:
    plain = CliCommand(name="c", arguments=(CliArgument(name="a"),))
    with pytest.raises(BadCall):
        command_words(plain, {"a": value})
    ended = CliCommand(name="c", arguments=(CliArgument(name="a"),), ends_options=True)
    assert command_words(ended, {"a": value}) == ["--", value]


def test_options_keep_their_values() -> None:
    arguments = (
        CliArgument(name="long", option="--long"),
        CliArgument(name="short", option="-s"),
        CliArgument(name="number", option="-n", type="integer"),
        CliArgument(name="on", option="--on", type="boolean"),
        CliArgument(name="many", option="--each", is_list=True),
    )
    command = CliCommand(name="c", words=("sub",), arguments=arguments)
    given: Any = {"long": "--x y", "short": "s", "number": -3, "on": True, "many": ["a", "b"]}
    assert command_words(command, given) == [
        "sub", "--long=--x y", "-s", "s", "-n", "-3", "--on", "--each=a", "--each=b",
    ]  # fmt: skip
    assert command_words(command, {"on": False, "long": None}) == ["sub"]
    for bad in ({"short": "-x"}, {"long": "a\0b"}, {"long": "x" * 100_001}):
        with pytest.raises(BadCall):
            command_words(command, bad)  # type: ignore[arg-type]


BROKEN: dict[str, Any] = {
    "no list": {"name": "a"},
    "none": [],
    "no name": [{"args": ["x"]}],
    "an odd name": [{"name": "a; b"}],
    "the same name": [{"name": "a"}, {"name": "a"}],
    "a shell string": [{"name": "a", "shell": "rm -rf /"}],
    "words in a string": [{"name": "a", "args": "a b"}],
    "an odd option": [{"name": "a", "arguments": [{"name": "b", "option": "; x"}]}],
    "an odd type": [{"name": "a", "arguments": [{"name": "b", "type": "object"}]}],
    "a positional switch": [{"name": "a", "arguments": [{"name": "b", "type": "boolean"}]}],
    "an unknown key": [{"name": "a", "arguments": [{"name": "b", "posit": True}]}],
    "two arguments of a name": [{"name": "a", "arguments": [{"name": "b"}, {"name": "b"}]}],
    "choices of numbers": [
        {"name": "a", "arguments": [{"name": "b", "type": "integer", "enum": [1]}]}
    ],
    "too many": [{"name": f"a{number}"} for number in range(501)],
}


@pytest.mark.parametrize("written", BROKEN.values(), ids=BROKEN.keys())
def test_commands_that_cannot_be_used_are_refused(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"commands|name|arguments"):
        read_commands(written)


def test_an_entry_is_read_and_shown(tmp_path: Path) -> None:
    gh = b'{"cli": "gh", "commands": [{"name": "issues"}]}'
    content = b'{"mcpServers": {"gh": %s, "x": {"cli": "x"}}}' % gh
    found = parse_servers(tmp_path / "mcp.json", content, ServerContext(environ={})).servers
    assert found["gh"].commands[0].name == "issues"  # type: ignore[union-attr]
    assert isinstance(found["x"], ServerFault)
    assert "`commands`" in found["x"].reason
    assert outline_servers(content) == ("gh: gh", "x: x")
