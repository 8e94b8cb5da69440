"""Programs as agents write them, with known outputs: all pass in `auto`, and in plain Python."""

import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from corpus.reading import HERE, Snippet, run_plainly, snippets
from support import write_config

from toolfold.app import App, running_app
from toolfold.config.config import load_config
from toolfold.execution.report import RunReport

CORPUS = snippets()
each_snippet = pytest.mark.parametrize(
    "snippet", [pytest.param(snippet, id=snippet.name) for snippet in CORPUS]
)


def skip_where_absent(snippet: Snippet) -> None:
    if extra := snippet.missing_extra:
        pytest.skip(f"{extra} is not installed")


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 150


@pytest.fixture(scope="module")
def plain() -> dict[str, dict[str, Any]]:
    """What the interpreter makes of each snippet, without any sandbox."""
    chosen = [each for each in CORPUS if each.missing_extra is None]
    return dict(zip((each.name for each in chosen), run_plainly(chosen), strict=True))


@each_snippet
def test_a_snippet_gives_the_same_in_plain_python(
    snippet: Snippet, plain: dict[str, dict[str, Any]]
) -> None:
    skip_where_absent(snippet)

    assert plain[snippet.name] == {"output": snippet.output, "value": snippet.value}


class Auto:
    """An app that chooses the interpreter by itself, and the choices it made."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.chosen: dict[str, str | None] = {}

    async def run(self, snippet: Snippet) -> RunReport:
        result = await self._app.runtime.run(snippet.code)
        self.chosen[snippet.name] = result.tier
        return result


SETTINGS = ["auto", pytest.param("cpython", marks=pytest.mark.soak)]


@pytest.fixture(scope="module", params=SETTINGS)
async def auto(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, anyio_backend: str
) -> AsyncIterator[Auto]:
    place = tmp_path_factory.mktemp("corpus")
    servers = {"shop": {"command": sys.executable, "args": [str(HERE / "shop.py")]}}
    config = load_config(
        config_file=write_config(place / "mcp.json", servers),
        cwd=place,
        environ={"PATH": os.environ["PATH"], "HOME": str(place), "TOOLFOLD_HOME": str(place / "h")},
        overrides={"sandbox": request.param},
    )
    async with running_app(config) as app:
        is_there, why = await app.runtime._tiers.examine()
        if not is_there:
            pytest.skip(f"there is no CPython tier here: {why}")
        yield Auto(app)


@each_snippet
async def test_a_snippet_gives_the_same_behind_walls(snippet: Snippet, auto: Auto) -> None:
    skip_where_absent(snippet)

    result = await auto.run(snippet)

    assert result.success, result.text
    assert (result.output, result.value) == (snippet.output, snippet.value)


def test_the_share_of_each_tier_is_told(auto: Auto, capsys: pytest.CaptureFixture[str]) -> None:
    if not auto.chosen:
        pytest.skip("no snippet was run before")

    counts = Counter(auto.chosen.values())
    shares = ", ".join(f"{tier} {n} ({n / counts.total():.0%})" for tier, n in counts.items())
    with capsys.disabled():
        print(f"\nof {counts.total()} snippets: {shares}")
    assert counts.keys() <= {"monty", "cpython"}
