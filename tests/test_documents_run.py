"""What the documents tell a reader to type is typed here, and shows what they say."""

import importlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import NOT_RUN, Block, Reader, blocks, matches
from support import ROOT

import toolfold
from toolfold.entrypoints.cli import make_parser, with_verb

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
WITH_BLOCKS = [page for page in PAGES if any(block.is_run for block in blocks(page))]

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    for needed in (shutil.which("node"), (ROOT / ".tools" / "sqlite" / "bin").exists()):
        if not needed:
            pytest.skip("Node.js or the servers of `make tools` are not installed.")
    reader = Reader(tmp_path)
    yield reader
    reader.type("toolfold stop --now")


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_a_page_shows_what_happens(page: Path, reader: Reader) -> None:
    faults = [fault for block in blocks(page) if block.is_run for fault in reader.read(block)]

    assert not faults, "\n".join([page.name, *faults])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_not_run_says_why_and_is_a_command_of_toolfold(page: Path) -> None:
    for block in blocks(page):
        if block.is_run:
            continue
        assert len(block.note.removeprefix(NOT_RUN).split()) >= 3, f"{page.name}:{block.line}"
        for command, _ in block.commands() if block.kind == "console" else []:
            typed = re.split(r" [<>] ", command.split("|")[-1])[0].strip()
            if typed.startswith("toolfold "):
                words = shlex.split(typed, comments=True)[1:]
                assert can_be_parsed(words), f"{page.name}:{block.line}: {command}"


def can_be_parsed(words: list[str]) -> bool:
    try:
        make_parser().parse_args(with_verb(words))
    except SystemExit:
        return False
    return True


def test_an_ellipsis_stands_for_anything_and_all_else_for_itself() -> None:
    assert matches("3 files, … KB", "3 files, 177 KB\n")
    assert matches("a\n…\nz", "a\nb\nc\nz")
    assert not matches("3 files", "4 files")
    assert not matches("a", "a\nb")


def test_commands_and_programs_of_a_page_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n<!-- not run: it takes hours -->\n"
        "```console\n$ one\n> more\nsaid\n$ two\n```\n\n"
        '```python title="x.py"\n1\n```\n\n```python\n2 + 2\n```\n\n```text\n4\n```\n'
    )
    first, second, third = blocks(page)

    assert first.commands() == [("one\nmore", "said"), ("two", "")]
    assert (first.is_run, second.title, third.shown) == (False, "x.py", "4\n")
    assert isinstance(first, Block)


@pytest.mark.parametrize("script", ["write_benchmarks", "write_verb_page"])
def test_a_page_that_is_made_is_up_to_date(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = importlib.import_module(script)

    assert module.PAGE.read_text(encoding="utf-8") == module.page(), f"run scripts/{script}.py"


def test_the_page_of_benchmarks_shows_a_target_that_was_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    write_benchmarks = importlib.import_module("write_benchmarks")
    ratio = {"median": 9.0, "q1": 8.0, "q3": 10.0}
    each = {"title": "one call", "ratio": ratio, "pairs": 31, "target": None}

    assert "**missed**" in write_benchmarks._time_row("single-call", each)
    ratio["median"] = 1.0
    assert "| met |" in write_benchmarks._time_row("single-call", each)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    mkdocs = ROOT / ".tools" / "docs" / "bin" / "mkdocs"
    if not mkdocs.exists():
        pytest.skip("mkdocs is not installed; `make tools` installs it.")
    command = [str(mkdocs), "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env={"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    start = (tmp_path / "start" / "index.html").read_text(encoding="utf-8")

    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert f"toolfold {toolfold.__version__}" in start
    assert not re.search(r'<(?:link|script|img)[^>]+(?:src|href)="https?://(?!toolfold)', start)
    benchmarks = (tmp_path / "benchmarks" / "index.html").read_text(encoding="utf-8")
    assert 'href="https://github.com/toolfold/toolfold/blob/main/bench/README.md"' in benchmarks


def test_every_page_stands_in_the_navigation() -> None:
    listed = re.findall(r": (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))
