"""What shells offer at the Tab key, and the page and the manual that are made from the parser."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from toolfold.entrypoints.cli import run_command
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    servers = {"mcpServers": {"github": {"command": "x"}, "gitlab": {"command": "y"}}}
    (home / "config" / "mcp.json").write_text(json.dumps(servers))
    monkeypatch.setenv("TOOLFOLD_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run_command(["complete", *words]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


def test_commands_verbs_and_options_are_offered(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {"install", "doctor", "run"} <= set(offered(capsys, ""))
    assert offered(capsys, "to") == ["tools"]
    assert "daemon" not in offered(capsys, "")
    assert offered(capsys, "memory", "resto") == ["restore"]
    assert "--dry-run" in offered(capsys, "run", "--")
    assert offered(capsys, "completion", "")[:3] == ["bash", "zsh", "fish"]
    assert offered(capsys, "memory", "search", "x", "--match", "") == ["any", "all"]


def test_live_names_are_offered(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(home / "data" / "runs.db", days=30, max_bytes=1 << 29, code_bytes=100)
    with journal.opened(), journal.begin(Origin(), "1 + 1") as run:
        run.end(failure=None, reply="2")

    assert offered(capsys, "login", "git") == ["github", "gitlab"]
    assert offered(capsys, "tools", "list", "--server", "githu") == ["github"]
    assert offered(capsys, "runs", "show", run.id[:4]) == [run.id]
    assert "claude" in offered(capsys, "install", "")
    assert "memory.search" in offered(capsys, "policy", "deny", "memory.sea")
    assert ":files" in offered(capsys, "run", "")


def test_what_is_broken_offers_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config" / "config.toml").write_text("[")

    assert "github" not in offered(capsys, "login", "git")


def test_bash_completes(home: Path, tmp_path: Path) -> None:
    script = f"""
toolfold() {{ {sys.executable} -P -m toolfold "$@"; }}
source <(toolfold completion bash)
COMP_WORDS=(toolfold login git); COMP_CWORD=2
_toolfold
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", script], capture_output=True, text=True, timeout=50, cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home)},
    )  # fmt: skip

    assert done.stdout.split() == ["github", "gitlab"], done.stderr


@pytest.mark.parametrize(("shell", "option"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_other_shells_take_the_script(
    shell: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "toolfold complete" in script
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    done = subprocess.run([found, option, tmp_path / "script"], capture_output=True, timeout=50)
    assert done.returncode == 0


def test_the_page_and_the_manual_are_those_of_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import write_commands

    assert write_commands.PAGE.read_text() == write_commands.page(), "run scripts/write_commands.py"
    assert write_commands.MANUAL.read_text() == write_commands.manual()
    for parser in write_commands.parsers():
        assert parser.description, parser.prog
        assert parser.examples, parser.prog
