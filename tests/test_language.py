"""Words that we do not use where people read, and a sentence for every class of error."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
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
    "hoever ", "omebody", " anew", "gone on with", "went on with", "goes on with", "ended well",
    "what there is", "something else of itself", "come to its end", "holds after all",
    "in the place of", "takes it out again", "at this moment", "puts it back", "is not known here",
    "be mended", "honour", "stands for nothing", "is no base64", "is no OpenAPI", "is no GraphQL",
    "Tell how", "none of toolfold",
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
    found += [str(module.relative_to(ROOT)) for module, text in shown() if sentence in text]

    assert found == []


@cache
def shown() -> list[tuple[Path, str]]:
    return [(module, text) for module in MODULES for text in texts(module)]


COUNTED = re.compile(
    r" (?:[a-z]+ )?(calls|changes|documents|entities|entries|events|files|keys|lines|notes|pages"
    r"|relations|requests|rows|rules|runs|servers|skills|tools|users|values|versions)\b"
)
NEVER_ONE = re.compile(
    r" at once| (are|is) too (many|much)| each are| wait for their| are named| who work like"
    r"| on $| files and directories| other runs| with |; at most| notes\. Give more| queries and"
    r"| rows of $|  sha256| runs and calls"
)
"""What is said only of more than one, or of a limit, or in a column."""


def glued(module: Path) -> Iterator[str]:
    """Yield the texts of a module in which a number that may be 1 stands before a plural."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        values = node.values if isinstance(node, ast.JoinedStr) else []
        for number, text in pairwise(values):
            if not (isinstance(number, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            said, written = str(text.value), ast.unparse(number.value)
            is_limit = re.fullmatch(r"_?[A-Z_]+|self\._?limits\.\w+|self\.quota\.\w+", written)
            is_word = re.match(
                r"(shown\()?\w*(path|place|source|requests|calls|url|hook)\b", written
            )
            is_right = written.startswith("count(") or is_limit or is_word
            if COUNTED.match(said) and not NEVER_ONE.search(said) and not is_right:
                yield f"{module.relative_to(ROOT)}:{node.lineno}: {{{written}}}{said}"


def test_plurals_are_right() -> None:
    """A count that may be 1 goes by `count`, in every text that the product shows."""
    assert [text for module in MODULES for text in glued(module)] == []


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
