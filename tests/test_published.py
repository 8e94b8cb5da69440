"""What the world reads of us besides the package: the registry's file, the plugin, its skill."""

import json
import re
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
