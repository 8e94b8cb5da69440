"""The real Claude Code with toolfold's hook for programs; only the model is a stand-in."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hooks.home import HookHome, hook_home
from servers.model_api import ModelApi, serve_model_api
from support import CLAUDE_CODE_ENVIRON, claude_code, scripted

TOOL = "mcp__toolfold__execute_code"
TOOLS = [
    {"name": "read", "annotations": {"readOnlyHint": True}, "answers": ["some text"]},
    {"name": "wipe", "annotations": {"destructiveHint": True}, "answers": ["wiped"]},
]
READS = "print(box.read())"
WRITES = "print(box.read())\nprint(box.wipe())"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[HookHome]:
    """Return the home of somebody who uses one server, and toolfold with its hooks."""
    with hook_home(tmp_path) as home:
        servers = {"box": scripted(tmp_path / "box.json", TOOLS)}
        root = {"hasCompletedOnboarding": True, "mcpServers": servers}
        (tmp_path / ".claude.json").write_text(json.dumps(root))
        home.environ |= {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **CLAUDE_CODE_ENVIRON,
            "TOOLFOLD_HOOKS_PROMPT_TIMEOUT_S": "25",  # the machine may be busy
            "TOOLFOLD_HOOKS_TIMEOUT_S": "25",
        }
        installed = home.toolfold("install", "claude", "--hooks")
        assert installed.returncode == 0, installed.stderr
        assert home.toolfold("doctor").returncode == 0  # which learns the tools
        yield home


def settings(home: HookHome) -> Path:
    return Path(home.environ["HOME"]) / ".claude" / "settings.json"


def attend(home: HookHome) -> None:
    """Have the hook believe that a person attends: Claude Code with `-p` says that none does."""
    text = settings(home).read_text()
    hooks = json.loads(text)
    [entry] = hooks["hooks"]["PreToolUse"]
    [inner] = entry["hooks"]
    inner["command"] = f"CLAUDE_CODE_SESSION_ATTENDED=1 {inner['command']}"
    inner["timeout"] = 30
    settings(home).write_text(json.dumps(hooks))


def converse(home: HookHome, code: str, *options: str) -> tuple[list[str], str]:
    """Have the model call execute_code; return what was not permitted, and what it was told."""
    with serve_model_api(TOOL, {"code": code}) as api:
        done = subprocess.run(
            claude_code("-p", "Go.", "--output-format", "json", *options),
            env={**home.environ, "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "none"},
            cwd=home.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        denied = json.loads(done.stdout)["permission_denials"]
        return [each["tool_name"] for each in denied], told(api)


def told(api: ModelApi) -> str:
    [result] = api.results()
    content: Any = result["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def called(home: HookHome) -> list[str]:
    log = Path(home.environ["HOME"]) / "box.json.log"
    return [json.loads(line)[0] for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.timeout(400)
def test_with_the_hook_reading_raises_no_prompt_and_writing_does(home: HookHome) -> None:
    attend(home)

    assert converse(home, READS) == ([], "some text"), home.log
    denied, words = converse(home, WRITES, "--allowedTools", TOOL)
    hidden, why = converse(home, "getattr(box, 'wi' + 'pe')()", "--allowedTools", TOOL)

    assert denied == hidden == [TOOL]
    assert "toolfold: it calls box.wipe." in words
    assert "getattr is used (line 1)" in why
    assert called(home) == ["read"]
    assert home.log == ""


@pytest.mark.timeout(400)
def test_unattended_the_hook_says_nothing_and_the_client_decides(home: HookHome) -> None:
    denied, _ = converse(home, READS)
    allowed = converse(home, WRITES, "--allowedTools", TOOL)

    assert denied == [TOOL]
    assert allowed == ([], "some text\nwiped")
    assert called(home) == ["read", "wipe"]


ANSWERS = {
    "accept": {"approve": True},
    "decline": None,
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("action", list(ANSWERS))
def test_without_the_hook_it_asks_by_elicitation(home: HookHome, action: str) -> None:
    output: dict[str, Any] = {"hookEventName": "Elicitation", "action": action}
    if ANSWERS[action]:
        output["content"] = ANSWERS[action]
    answer = home.home / "answer.json"
    answer.write_text(json.dumps({"hookSpecificOutput": output}))
    command = f"cat >> {home.home}/asked.jsonl; sleep 1; cat {answer}"  # as long as a person takes
    hooks = {"Elicitation": [{"hooks": [{"type": "command", "command": command}]}]}
    settings(home).write_text(json.dumps({"hooks": hooks}))

    denied, words = converse(home, WRITES, "--allowedTools", TOOL)

    assert denied == []
    asked = (home.home / "asked.jsonl").read_text()
    assert "box.wipe" in asked
    if action == "accept":
        assert words == "some text\nwiped"
    else:
        assert "The user rejected box.wipe" in words
        assert called(home) == ["read"]
