"""Words that we do not use where people read, and a sentence for every class of error."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT

SENTENCES = (
    "how manieth", "when they start anew", "answers of then", "ends before its end",
    "says not what it shall be", "` is no setting", "are no JSON", "is no JSON",
    "until that is mended",
    "parted by commas", "It is back", "has the relays", "The audit log holds", "Let it be called",
    "open nothing any more", "vectors anew", "only rules about names can be told", "REST door",
    "written for, and not shown", "that did not pass through a model", "hang together",
    "make order in the notes", "Say --yes where", "go on with a run whose daemon died",
    "It is frozen there", "used 1, well 1", "at most 100 times", "in the midst",
)  # fmt: skip
"""Marked by people who tried the product for the first time."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted((ROOT / "src" / "toolfold").rglob("*.py"))


def texts(module: Path) -> Iterator[str]:
    """Yield the strings of a module that may be shown: all but docstrings."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("sentence", SENTENCES)
def test_sentences_that_made_readers_stop_are_gone(sentence: str) -> None:
    found = [page.name for page in PAGES if sentence in page.read_text(encoding="utf-8")]
    found += [str(module.relative_to(ROOT)) for module, text in SHOWN if sentence in text]

    assert found == []


SHOWN = [(module, text) for module in MODULES for text in texts(module)]


def test_plurals_are_right() -> None:
    """A count that may be 1 goes by `count`: no text of the terminal glues a number to a plural."""
    glued = re.compile(r"\{[\w.]+(?::,)?\} (runs|calls|notes|pages|keys|entries|servers)\b")
    wrong = [
        f"{module.name}: {line.strip()}"
        for module in sorted((ROOT / "src/toolfold/entrypoints/commands").glob("*.py"))
        for line in module.read_text(encoding="utf-8").splitlines()
        if glued.search(line)
    ]

    assert wrong == []


def test_every_class_of_error_says_what_it_means_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import write_errors

    assert write_errors.PAGE.read_text() == write_errors.page(), "run scripts/write_errors.py"
    names = [each.__name__ for each in write_errors.classes()]
    assert sorted(names) == sorted(write_errors.REMEDIES)
    for remedy in write_errors.REMEDIES.values():
        assert remedy.endswith(".")
        assert remedy[0].isupper() or remedy[0] == "`"
