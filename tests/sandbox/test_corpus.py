"""Programs as agents write them, with known outputs: the interpreter itself must give the same."""

from typing import Any

import pytest
from corpus.reading import Snippet, run_plainly, snippets

CORPUS = snippets()
each_snippet = pytest.mark.parametrize(
    "snippet", [pytest.param(snippet, id=snippet.name) for snippet in CORPUS]
)


@pytest.fixture(scope="module")
def plain() -> dict[str, dict[str, Any]]:
    """What the interpreter makes of each snippet, without any sandbox."""
    chosen = [each for each in CORPUS if each.missing_extra is None]
    return dict(zip((each.name for each in chosen), run_plainly(chosen), strict=True))


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 150


@each_snippet
def test_a_snippet_gives_the_same_in_plain_python(
    snippet: Snippet, plain: dict[str, dict[str, Any]]
) -> None:
    if extra := snippet.missing_extra:
        pytest.skip(f"{extra} is not installed")

    assert plain[snippet.name] == {"output": snippet.output, "value": snippet.value}
