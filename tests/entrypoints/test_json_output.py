"""Every command that shows something takes `--json`, and prints what its documented shape says."""

import argparse
from pathlib import Path
from types import ModuleType

import json_walk
import jsonschema
import pytest
from support import ROOT

from toolfold.entrypoints.cli import make_parser, with_verb


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import json_shapes

    return json_shapes


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    json_walk.prepare(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOOLFOLD_HOME", str(tmp_path / "toolfold"))
    monkeypatch.setenv("TOOLFOLD_NO_DAEMON", "1")
    monkeypatch.chdir(tmp_path)


def commands(parser: argparse.ArgumentParser, *before: str) -> dict[str, bool]:
    """Return whether each command that is listed takes `--json`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = {}
            for each in action._choices_actions:
                found |= commands(action.choices[each.dest], *before, each.dest)
            return found
    return {" ".join(before): any("--json" in each.option_strings for each in parser._actions)}


def command_of(words: list[str]) -> str:
    known = commands(make_parser())
    named = with_verb(words)
    return next(name for name in (" ".join(named[:2]), named[0]) if name in known)


def test_every_command_has_a_shape_or_a_reason_for_none(shapes: ModuleType) -> None:
    known = commands(make_parser())

    assert sorted(shapes.SHAPES) == sorted(name for name, takes in known.items() if takes)
    assert sorted(shapes.WITHOUT) == sorted(name for name, takes in known.items() if not takes)
    for shape in shapes.SHAPES.values():
        jsonschema.Draft202012Validator.check_schema(shapes.schema(shape))


@pytest.mark.usefixtures("place")
def test_what_starts_nothing_prints_its_shape(
    shapes: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    check(shapes, capfd, only=json_walk.QUICK)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("place")
def test_every_command_prints_its_shape(
    shapes: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    needs_more = {"memory undo", "memory supersede", "memory reinstate", "runs resume", "migrate"}
    needs_more |= {"login"}  # a crash, a database or a server with a login: tried elsewhere
    needs_more |= {"secrets set", "secrets remove"}  # they read what is typed
    needs_more |= {"policy allow"}  # a person at a terminal types it

    assert set(shapes.SHAPES) - check(shapes, capfd, only=None) == needs_more


def check(
    shapes: ModuleType, capfd: pytest.CaptureFixture[str], *, only: frozenset[str] | None
) -> set[str]:
    """Validate what every step prints; return the commands that were tried."""
    tried = set()
    for name, words, answer, said in json_walk.walk(capfd.readouterr, only=only):
        command = command_of(words)
        try:
            jsonschema.validate(answer, shapes.schema(shapes.SHAPES[command]))
        except jsonschema.ValidationError as error:
            pytest.fail(f"{name}: {error.message} at {list(error.path)}; {said}")
        tried.add(command)
    return tried
