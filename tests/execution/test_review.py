"""The check before a run: it finds the mistakes that models make, and lets correct code pass."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import SHARED_DATA, catalogue, test_server, write_config
from tables import correct_code, mistakes_caught_before, mistakes_caught_in_the_run

from toolfold.app import App, running_app
from toolfold.config.config import load_config
from toolfold.config.settings import Limits
from toolfold.execution.analysis.plan import make_plan
from toolfold.execution.report import RunReport
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import GuestCall, Program

TRACKER = Path(__file__).with_name("tracker.py")


@pytest.fixture(scope="module")
async def app(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    place = tmp_path_factory.mktemp("review")
    servers = {
        name: {"command": sys.executable, "args": [str(TRACKER), name]}
        for name in ("tracker", "chat")
    }
    config = load_config(
        config_file=write_config(place / "mcp.json", servers),
        cwd=place,
        environ={"PATH": os.environ["PATH"], "HOME": str(place)},
        overrides={"sandbox": "monty"},  # the tables know what it lacks
    )
    async with running_app(config) as app:
        await app.catalog.learn()
        yield app


def completed(result: RunReport) -> int:
    return sum(count.completed for count in result.calls)


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [pytest.param(*row, id=name) for name, *row in mistakes_caught_before()],
)
async def test_a_mistake_is_told_with_its_fix_before_any_tool_is_called(
    app: App, code: str, line: int, words: list[str]
) -> None:
    # A correct call stands first: had the code run at all, it would have been made.
    result = await app.runtime.run(
        f"import tracker\ntracker.add_comment(number=1, body='x')\n{code}"
    )

    assert not result.success
    assert result.calls == ()
    assert "Nothing was run" in result.text
    assert f"Line {line + 2}: " in result.text
    for word in words:
        assert word in result.text


@pytest.mark.parametrize(
    ("code", "words"),
    [pytest.param(*row, id=name) for name, *row in mistakes_caught_in_the_run()],
)
async def test_a_mistake_that_shows_in_the_run_is_told_with_its_fix(
    app: App, code: str, words: list[str]
) -> None:
    result = await app.runtime.run(code)

    assert not result.success
    for word in words:
        assert word in result.text


@pytest.mark.parametrize(
    ("code", "calls"), [pytest.param(*row, id=name) for name, *row in correct_code()]
)
async def test_correct_code_is_not_stopped_by_the_check(app: App, code: str, calls: int) -> None:
    result = await app.runtime.run(code)

    assert result.success, result.text
    assert completed(result) == calls


async def test_a_line_is_named_once_for_each_mistake_in_it(app: App) -> None:
    result = await app.runtime.run("import tracker\ntracker.get(nope)\ntracker.get_issue()\n")

    lines = [line for line in result.text.splitlines() if line.startswith("Line ")]
    assert [line[:7] for line in lines] == ["Line 2:", "Line 2:", "Line 3:"]
    assert "    tracker.get(nope)" in result.text


async def test_the_tools_of_a_real_catalogue_can_be_called_and_mistaken(
    anyio_backend: str, tmp_path: Path
) -> None:
    servers = {"github": test_server("replay", catalogue("github"))}
    config = load_config(
        config_file=write_config(tmp_path / "mcp.json", servers),
        cwd=tmp_path,
        environ={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    right = "import github\ngithub.get_me()"
    wrong = "import github\ngithub.get_mee()"
    async with running_app(config) as app:
        await app.catalog.learn()
        called = await app.runtime.run(right)
        mistaken = await app.runtime.run(wrong)

    assert called.success, called.text
    assert mistaken.calls == ()
    assert "github.get_me(" in mistaken.text


# The snippets that the sandbox was chosen by, where they are at hand.

SHARED_SNIPPETS = SHARED_DATA.parent / "prototypes" / "snippets.py"
TOOLS = """
def search(q, limit=3): return [{"id": f"{q}{i}", "score": i / 7} for i in range(limit)]
def rows(): return [{"team": t, "amount": a} for t, a in (("red", 10.5), ("blue", 70), ("red", 55))]
def doc(): return "Ada <ada@example.org> wrote on 2026-03-01, bob@example.com on 2026-03-05."
def get_page(n): return {"items": [n, n + 1], "next": n + 1 if n < 3 else None}
def flaky(i):
    if i % 2: raise ValueError("odd")
    return i
async def afetch(u): return u * 3
async def aflaky(i):
    if i % 2: raise ValueError("odd")
    return i
class Memory:
    def search(self, q, limit=3): return search(q, limit)
    def save(self, key, value): return True
    def get(self, key): return key
memory = Memory()
"""


def shared_snippets() -> list[tuple[str, str]]:
    if not SHARED_SNIPPETS.exists():
        return []
    found: dict[str, list[tuple[str, str]]] = {}
    exec(SHARED_SNIPPETS.read_text(encoding="utf-8"), found)  # a table of our own, no guest code
    return found["S"]


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str) -> AsyncIterator[MontySandbox]:
    sandbox = MontySandbox(Limits(guest_time_s=5.0), workers=1)
    async with sandbox.running():
        yield sandbox


async def runs_unchecked(sandbox: MontySandbox, code: str) -> bool:
    async def no_tools(call: GuestCall) -> None:
        raise AssertionError(call)

    plan = make_plan(code, max_bytes=100_000)
    async with sandbox.open({}, frozenset()) as session:
        outcome = await session.run(Program(source=plan.source, awaited=plan.awaited), no_tools)
    return outcome.failure is None


@pytest.mark.skipif(not SHARED_SNIPPETS.exists(), reason=f"{SHARED_SNIPPETS} is not at hand")
@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in shared_snippets()])
async def test_a_snippet_that_the_sandbox_can_run_is_not_stopped(
    app: App, sandbox: MontySandbox, code: str
) -> None:
    result = await app.runtime.run(TOOLS + code)

    if await runs_unchecked(sandbox, TOOLS + code):
        assert result.success, result.text
    elif "/workspace" not in code:  # which is not there unchecked
        assert not result.success
        assert "in this sandbox" in result.text, result.text
