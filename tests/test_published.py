"""What the world reads of us besides the package: the registry's file, the plugin, its skill."""

import importlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from support import ROOT

import toolfold
from toolfold.config.entry import is_toolfold
from toolfold.execution.analysis.plan import make_plan

# The parts of the registry's schema that concern a PyPI package over stdio.
TEXT = {"type": "string", "minLength": 1, "maxLength": 100}
SERVER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "properties": {
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
        },
        "name": {"pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "title": TEXT,
        "description": TEXT,
        "version": {"type": "string"},
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "version", "transport"],
                "additionalProperties": False,
                "properties": {
                    "registryType": {"const": "pypi"},
                    "identifier": {"const": "toolfold"},
                    "version": {"type": "string", "minLength": 1, "not": {"const": "latest"}},
                    "runtimeHint": {"const": "uvx"},
                    "transport": {"const": {"type": "stdio"}},
                    "packageArguments": {
                        "items": {
                            "required": ["type", "value"],
                            "properties": {"type": {"const": "positional"}},
                        }
                    },
                    "environmentVariables": {
                        "items": {
                            "required": ["name"],
                            "properties": {"isRequired": {"type": "boolean"}},
                        }
                    },
                },
            },
        },
    },
    "additionalProperties": False,
}


def read(name: str) -> Any:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def test_the_registry_can_read_our_file_and_the_readme_proves_that_it_is_ours() -> None:
    server = read("server.json")

    jsonschema.validate(server, SERVER_SCHEMA)
    assert server["name"] == "io.github.toolfold/toolfold"
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text()
    [argument] = server["packages"][0]["packageArguments"]
    assert is_toolfold("uvx", (server["packages"][0]["identifier"], argument["value"]))


def test_every_version_that_we_publish_is_that_of_the_package() -> None:
    server, marketplace = read("server.json"), read(".claude-plugin/marketplace.json")
    versions = [
        server["version"],
        server["packages"][0]["version"],
        read("plugin/.claude-plugin/plugin.json")["version"],
        marketplace["plugins"][0]["version"],
    ]

    assert versions == [toolfold.__version__] * 4


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("release")


@pytest.fixture
def copy(release: ModuleType, tmp_path: Path) -> Path:
    """A repository with the files that a release changes."""
    for path in [*release.NAMES_VERSION, release.CHANGELOG]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_release_puts_its_version_everywhere_and_ends_before_the_upload(
    release: ModuleType, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    git(copy, "init", "-q")
    git(copy, "add", "--all")
    git(copy, "commit", "-qm", "Begin")
    unreleased = release.notes((copy / "CHANGELOG.md").read_text(), "Unreleased")

    release.prepare(copy, "99.1.0", "2026-11-18")
    release.finish(copy, "99.1.0")

    for path in release.NAMES_VERSION:
        text = (copy / path).read_text()
        assert toolfold.__version__ not in text
        assert text.count("99.1.0") == (ROOT / path).read_text().count(toolfold.__version__)
    assert "## [Unreleased]\n\n## [99.1.0] - 2026-11-18\n" in (copy / "CHANGELOG.md").read_text()
    assert (copy / "dist" / "NOTES.md").read_text() == unreleased + "\n"
    assert git(copy, "tag", "--points-at", "HEAD") == "v99.1.0"
    assert git(copy, "log", "-1", "--format=%s") == "Release 99.1.0"


@pytest.mark.parametrize(
    ("version", "message"),
    [("1.2", "not a version"), ("v1.2.0", "not a version"), ("0.0.1", "older"), ("", "not a")],
)
def test_a_release_with_a_wrong_version_changes_nothing(
    release: ModuleType, copy: Path, version: str, message: str
) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}

    with pytest.raises(SystemExit, match=message):
        release.prepare(copy, version, "2026-11-18")
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_a_release_needs_something_in_the_changelog(release: ModuleType) -> None:
    with pytest.raises(SystemExit, match="nothing below"):
        release.dated_changelog(
            "# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n\n- a\n", "0.2.0", ""
        )
    with pytest.raises(SystemExit, match=r"has 0\.1\.0 already"):
        release.dated_changelog("## [Unreleased]\n\n- b\n\n## [0.1.0]\n", "0.1.0", "")


def test_the_plugin_starts_toolfold() -> None:
    [(name, entry)] = read("plugin/.mcp.json")["mcpServers"].items()

    assert name == "toolfold"
    assert is_toolfold(entry["command"], tuple(entry["args"]))
    assert entry["args"] == ["mcp"]


SKILL = (ROOT / "plugin/skills/toolfold/SKILL.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", SKILL, re.DOTALL))
def test_the_code_that_the_skill_teaches_could_run(block: str) -> None:
    code = "\n".join(line.removeprefix("   ") for line in block.splitlines())

    assert make_plan(code, max_bytes=100_000).unsupported == ()


def test_the_skill_says_what_the_documents_say_of_the_language() -> None:
    documents = (ROOT / "docs/code.md").read_text(encoding="utf-8")

    def modules(text: str) -> str:
        found = re.search(r"asyncio \(gather, run, sleep\).*?unicodedata", text, re.DOTALL)
        assert found
        return " ".join(found[0].split())

    assert modules(SKILL) == modules(documents)
    assert len(SKILL.split("description: ")[1].split("\n")[0]) <= 1024
