"""What is derived from the table of verbs: by doors as they run, and in files that are kept."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolfold.entrypoints.derived_options import add_derived
from toolfold.entrypoints.mcp.memory import memory_tools
from toolfold.entrypoints.parser import Parser
from toolfold.entrypoints.rest.verbs import verb_operations
from toolfold.memory.registry import verb
from toolfold.memory.verbs import VERBS, verbs_of
from toolfold.mounts import built_in_tools

ROOT = Path(__file__).parents[2]


def write_verbs() -> ModuleType:
    path = ROOT / "scripts" / "write_verbs.py"
    spec = importlib.util.spec_from_file_location("write_verbs", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_files_made_from_the_table_are_current() -> None:
    script = write_verbs()

    for path, text in script.outputs().items():
        expected = script.formatted(path, text)
        assert path.read_text() == expected, f"{path}: run scripts/write_verbs.py."


class Extra:
    @verb("reads", "GET /memory/words/{name}", wrap="count", is_tool=True)
    async def count_words(self, name: str, limit: int = 3, *, exact: bool = False) -> int:
        """Count the words of a thing.

        It counts no more than `limit`.
        """
        return limit


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb that is only registered, as a new one would be."""
    [made] = verbs_of(Extra, "notes", "memory", "memory")
    assert isinstance(VERBS, dict)
    monkeypatch.setitem(VERBS, made.path, made)


@pytest.mark.usefixtures("added")
def test_a_new_verb_is_at_every_door_once_it_is_registered() -> None:
    [tool] = [each for each in memory_tools() if each["name"] == "memory_count_words"]
    [listed] = [each for each in built_in_tools()["memory"] if each.name == "count_words"]
    [operation] = [each for each in verb_operations() if each.path == "/memory/words/{name}"]

    assert tool["description"] == "Count the words of a thing."
    assert tool["inputSchema"]["properties"]["limit"] == {"type": "integer", "default": 3}
    assert listed.positional == ("name", "limit")
    assert operation.method == "GET"
    assert operation.takes["required"] == ["name"]


@pytest.mark.usefixtures("added")
def test_functions_methods_and_commands_for_a_new_verb_are_written() -> None:
    script = write_verbs()
    made = {
        path.relative_to(script.ROOT).as_posix(): text for path, text in script.outputs().items()
    }
    name = "count_words(name: str, limit: int = 3, *, exact: bool = False) -> int"

    assert f"def {name}:" in made["api/verbs.py"]
    assert (
        'return forms.number(ask("memory.count_words", locals(), may_repeat=True))'
        in (made["api/verbs.py"])
    )
    assert f"def {name.replace('(', '(self, ')}:" in made["client/verbs.py"]
    assert "'memory', 'words', name".replace("'", '"') in made["client/verbs.py"]
    assert (
        "('count-words', 'Count the words of a thing', 'memory.count_words', True"
        in (made["entrypoints/verb_commands.py"])
    )


def test_a_command_takes_what_its_verb_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = (
        ("name", "string", True),
        ("limit", "integer", False),
        ("exact", "boolean", False),
    )
    row = ("count-words", "Count words", "memory.count_words", True, parameters)
    monkeypatch.setattr("toolfold.entrypoints.derived_options.COMMANDS", (row,))
    parser = Parser()
    commands: Any = parser.add_subparsers()

    add_derived(commands)
    given = parser.parse_args(["count-words", "Ada", "--limit", "7", "--exact"])

    assert (given.name, given.limit, given.exact) == ("Ada", 7, True)
    assert given.verb == ("memory.count_words", True, ("name", "limit", "exact"))
    assert (given.module, given.command) == ("commands.derived", "call_verb")
