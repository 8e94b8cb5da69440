"""`toolfold import` and `toolfold export`, as a person uses them; without a daemon."""

import io
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolfold.api.door import close
from toolfold.entrypoints.commands.transfer import export_memory, import_memory

GRAPH = (
    b'{"type":"entity","name":"Ada","entityType":"person","observations":["codes"]}\n'
    b'{"type":"relation","from":"Ada","to":"Acme","relationType":"at"}\n'
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a memory of its own."""
    monkeypatch.setenv("TOOLFOLD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TOOLFOLD_NO_DAEMON", "1")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    close()


def options(**given: object) -> Namespace:
    return Namespace(namespace=None, json=False, dry_run=False, **given)


def test_a_file_is_imported_and_the_kind_told_by_looking(
    directory: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (directory / "misnamed.txt").write_bytes(GRAPH + b"nonsense\n")

    assert import_memory(Namespace(namespace=None, json=False, dry_run=True, file="misnamed.txt"))
    assert b"Nothing was changed" in capsysbinary.readouterr().out
    assert import_memory(options(file="misnamed.txt")) == 1
    said = capsysbinary.readouterr().out
    assert b"Memory of server-memory." in said
    assert b"entities: 1 added" in said
    assert b"line 3: " in said

    assert export_memory(options(file=None, format="server-memory")) == 0
    assert capsysbinary.readouterr().out == GRAPH


def test_an_export_into_a_file_comes_back_by_standard_input(
    directory: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GRAPH)))
    assert import_memory(options(file="-")) == 0
    assert export_memory(options(file="out.jsonl", format="toolfold")) == 0
    assert b"1 entity, 1 relation written to" in capsysbinary.readouterr().out
    content = (directory / "out.jsonl").read_bytes()

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    other = Namespace(namespace="elsewhere", json=False, dry_run=False, file="-", format="toolfold")
    assert import_memory(other) == 0
    capsysbinary.readouterr()
    assert export_memory(other) == 0
    assert capsysbinary.readouterr().out == content
