"""Code that takes too much, and values, objects and frames that lie, in every tier."""

import json
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from attacks.bombs import BOMBS, MEMORY, SOURCES, Bomb
from attacks.lies import CALLS, FRAMES, OBJECTS, VALUES
from attacks.tiers import TIGHTER, running, unhurried
from guests import LIMITS, Host, run, value_of

from toolfold.errors import CodeRejected
from toolfold.jsontypes import Json
from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import GuestOutcome, Sandbox

OFFERED = {"host.echo", "host.fail", "host.wait", "host.crash", "show", "mcp__host__echo"}
Row = tuple[str, str]


# Both levels are held by the same limits, so that the second shows what it can at length only.
AT_LENGTH = pytest.param("landlock", marks=pytest.mark.soak)


@pytest.fixture(scope="module", params=["monty", "namespaces", AT_LENGTH])
async def tier(
    request: pytest.FixtureRequest, anyio_backend: str
) -> AsyncIterator[tuple[str, Sandbox]]:
    async with running(request.param, TIGHTER) as sandbox:
        yield request.param, sandbox


@pytest.fixture(scope="module", params=["monty", "namespaces", AT_LENGTH])
async def sandbox(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with running(request.param, TIGHTER) as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=["namespaces", AT_LENGTH])
async def cpython(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with running(request.param, TIGHTER) as sandbox:
        yield sandbox


def each(rows: list[Row]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in rows])


async def ended(sandbox: Sandbox, code: str, host: Host) -> GuestOutcome:
    """Run hostile code, which must end, and see that the next run works."""
    with anyio.fail_after(60):
        outcome = await run(sandbox, code, host)
        assert await value_of(unhurried(sandbox), "1 + 1") == 2
    return outcome


@pytest.mark.parametrize("bomb", [pytest.param(bomb, id=bomb.name) for bomb in BOMBS])
async def test_what_takes_too_much_is_ended_and_the_next_run_works(
    tier: tuple[str, Sandbox], bomb: Bomb
) -> None:
    name, sandbox = tier
    if bomb.only == "cpython" and name == "monty":
        pytest.skip("Monty has no files to write")

    outcome = await ended(sandbox, bomb.code, Host())

    assert_ended_as_meant(bomb, outcome)


def assert_ended_as_meant(bomb: Bomb, outcome: GuestOutcome) -> None:
    kind = outcome.failure.kind if outcome.failure else "ends"
    # On a busy machine the clock may come before any other limit.
    assert kind in {*bomb.kinds.split(), "timeout"}, (bomb.name, outcome)
    # By assertions the code says that it got more than it may have.
    assert outcome.failure is None or "AssertionError" not in outcome.failure.message, outcome


def of_memory() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bomb", [pytest.param(bomb, id=bomb.name) for bomb in MEMORY])


def with_memory(sandbox: Sandbox, memory_bytes: int) -> Sandbox:
    """Return the same sandbox for code that must end by its memory, however busy the machine is."""
    assert isinstance(sandbox, MontySandbox | CPythonSandbox)
    return sandbox.within(replace(LIMITS, guest_time_s=30, memory_bytes=memory_bytes))


@of_memory()
async def test_what_takes_too_much_memory_is_ended_for_that_and_the_next_run_works(
    tier: tuple[str, Sandbox], bomb: Bomb
) -> None:
    name, sandbox = tier

    with anyio.fail_after(100):
        outcome = await run(with_memory(sandbox, LIMITS.memory_bytes), bomb.code, Host())
        assert await value_of(unhurried(sandbox), "1 + 1") == 2

    if bomb.only == "cpython" and name == "monty":
        assert outcome.failure is not None
        assert "ModuleNotFoundError" in outcome.failure.message
    elif outcome.failure is None:
        assert bomb.most is not None, outcome
        assert isinstance(outcome.value, int)
        assert outcome.value <= bomb.most
    else:
        assert outcome.failure.kind == "memory", outcome


@pytest.mark.soak
@of_memory()
async def test_with_memory_enough_none_of_them_is_ended_for_it(
    tier: tuple[str, Sandbox], bomb: Bomb
) -> None:
    """Else the rows above would pass whatever the limit is."""
    name, sandbox = tier
    if not bomb.fits or (bomb.only == "cpython" and name == "monty"):
        pytest.skip("No memory is enough for it, or it takes none here.")

    outcome = await run(with_memory(sandbox, 3 << 30), bomb.code, Host())

    if outcome.failure is None:
        assert isinstance(outcome.value, int)
        assert bomb.most is None or outcome.value > bomb.most
    else:
        assert outcome.failure.kind == "timeout", outcome


async def test_without_namespaces_threads_and_files_are_bounded_as_well() -> None:
    """Here alone the levels differ: limits count the user's threads, and there is no disk."""
    few = [bomb for bomb in BOMBS if any(word in bomb.name for word in ("thread", "fork", "file"))]
    assert len(few) > 3
    async with running("landlock", TIGHTER) as sandbox:
        for bomb in few:
            outcome = await ended(sandbox, bomb.code, Host())
            assert_ended_as_meant(bomb, outcome)


@each([*VALUES, *OBJECTS, *CALLS])
async def test_what_lies_harms_nobody(sandbox: Sandbox, code: str) -> None:
    host = Host()

    outcome = await ended(sandbox, code, host)

    assert_plain(outcome, host)


@each(FRAMES)
async def test_a_frame_that_was_never_meant_harms_nobody(cpython: Sandbox, code: str) -> None:
    host = Host()
    before = open_descriptors()

    outcome = await ended(cpython, code, host)

    assert_plain(outcome, host)
    assert {call.function for call in host.calls} <= OFFERED
    assert open_descriptors() <= before + 8  # those of guests that are ready


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in SOURCES])
async def test_hostile_source_is_refused_or_run(sandbox: Sandbox, source: str) -> None:
    with suppress(CodeRejected):
        assert_plain(await ended(sandbox, source, Host()), Host())


def assert_plain(outcome: GuestOutcome, host: Host) -> None:
    """See that all that came out is JSON within the budgets, and that text can be encoded."""
    assert len(host.calls) <= TIGHTER.calls
    for value in (outcome.value, *([*call.args, call.kwargs] for call in host.calls)):
        assert nodes(value) <= 2 * TIGHTER.value_nodes
        assert len(json.dumps(value)) <= 8 * TIGHTER.value_bytes
    assert len(outcome.output) <= TIGHTER.output_bytes
    if outcome.failure:
        assert outcome.failure.message
        assert len(outcome.failure.message) <= 20_000
        assert len(outcome.failure.traceback) <= 100_000
        assert outcome.failure.line is None or outcome.failure.line > 0


def nodes(value: Json) -> int:
    """Count the parts of a value, which must be plain."""
    match value:
        case dict():
            assert all(type(key) is str for key in value)
            return 1 + sum(map(nodes, value.values()))
        case list():
            return 1 + sum(map(nodes, value))
        case float():
            assert math.isfinite(value)
            return 1
        case None | bool() | int() | str():
            return 1
    raise AssertionError(type(value))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
