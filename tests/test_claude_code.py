"""The real Claude Code with toolfold in it; only the model is a stand-in."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.model_api import LAST_WORDS, serve_model_api
from support import CLAUDE_CODE_ENVIRON, ROOT, claude_code, entry, node_server, python

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TOOL = "mcp__toolfold__execute_code"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TOOLFOLD_HOME": str(tmp_path / "toolfold"),
        **CLAUDE_CODE_ENVIRON,
    }


@pytest.fixture
def run(tmp_path: Path, environment: dict[str, str]) -> Iterator[Run]:
    """Run a command in a project, and end at the end what toolfold may have left running."""
    project = tmp_path / "project"
    project.mkdir()

    def run(*command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, capture_output=True, text=True, cwd=project, timeout=100,
            env={**environment, **variables}, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    yield run
    stopped = run(*toolfold("stop"))
    assert "Traceback" not in stopped.stderr


def toolfold(*arguments: str) -> list[str]:
    return [python(), "-m", "toolfold", *arguments]


@pytest.fixture
def claude_json(tmp_path: Path) -> Path:
    """The file of somebody who uses two servers, and has told Claude Code what it asks at first."""
    policy = tmp_path / "toolfold" / "config" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text('[[policy]]\naction = "allow"\ntools = "files.write_file"\n')
    notes = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    servers = {
        "notes": entry(node_server("memory"), type="stdio", env=notes),
        "files": entry(node_server("filesystem", str(tmp_path)), type="stdio"),
    }
    root = {"hasCompletedOnboarding": True, "numStartups": 3, "mcpServers": servers}
    path = tmp_path / ".claude.json"
    path.write_text(json.dumps(root, indent=2))
    return path


CODE = """
import notes, files
ada = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
notes.create_entities(entities=[ada])
found = notes.search_nodes(query="Ada")["entities"]
files.write_file(path="HERE/report.txt", content=f"{len(found)} found")
print("read back:", files.read_text_file(path="HERE/report.txt"))
[entity["name"] for entity in found]
"""


@pytest.mark.timeout(300)
def test_claude_code_sees_one_tool_calls_it_and_reads_the_answer(
    run: Run, claude_json: Path, tmp_path: Path
) -> None:
    installed = run(*toolfold("install", "claude"))
    assert installed.returncode == 0, installed.stderr
    assert list(json.loads(claude_json.read_text())["mcpServers"]) == ["toolfold"]
    arguments = {"code": CODE.replace("HERE", str(tmp_path))}

    with serve_model_api(TOOL, arguments) as api:
        done = run(
            *claude_code("-p", "Note Ada.", "--output-format", "json", "--allowedTools", TOOL),
            ANTHROPIC_BASE_URL=api.url,
            ANTHROPIC_API_KEY="none",
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["result"] == LAST_WORDS
    [offered] = [t for t in api.conversation[0]["tools"] if t["name"].startswith("mcp__")]
    assert offered["name"] == TOOL
    assert offered["input_schema"]["required"] == ["code"]
    assert (
        "MCP servers are modules, already imported: files (filesystem), notes"
        in offered["description"]
    )
    assert not offered.get("defer_loading")
    [result] = api.results()
    assert not result.get("is_error"), result
    text = text_of(result)
    assert "read back: " in text
    assert "1 found" in text
    assert '["Ada"]' in text
    assert (tmp_path / "report.txt").read_text() == "1 found"


@pytest.mark.timeout(300)
def test_claude_code_starts_again_with_its_own_servers_after_uninstall(
    run: Run, claude_json: Path
) -> None:
    before = json.loads(claude_json.read_text())["mcpServers"]
    run(*toolfold("install", "claude"))
    listed = run(*claude_code("mcp", "list"))  # which connects, and writes its file anew
    undone = run(*toolfold("uninstall", "claude"))

    assert "toolfold" in listed.stdout
    assert "Connected" in listed.stdout
    assert undone.returncode == 0, undone.stderr
    assert json.loads(claude_json.read_text())["mcpServers"] == before
    assert not (claude_json.parent / "toolfold/config/mcp.json").exists()


def text_of(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.mark.parametrize("folder", [".", "plugin"])
def test_claude_code_finds_nothing_wrong_with_the_plugin_and_the_marketplace(
    run: Run, folder: str
) -> None:
    done = run(*claude_code("plugin", "validate", "--strict", str(ROOT / folder)))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout


def test_the_plugin_can_be_installed_from_the_marketplace_and_brings_its_skill(
    run: Run, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"  # without what a working copy has grown beside it
    for folder in (".claude-plugin", "plugin"):
        shutil.copytree(ROOT / folder, clone / folder)

    added = run(*claude_code("plugin", "marketplace", "add", str(clone)))
    installed = run(*claude_code("plugin", "install", "toolfold@toolfold"))
    details = run(*claude_code("plugin", "details", "toolfold@toolfold"))

    assert added.returncode == 0, added.stdout + added.stderr
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert "toolfold" in details.stdout
    assert "Skills (1)  toolfold" in details.stdout
    assert "MCP servers (1)  toolfold" in details.stdout
