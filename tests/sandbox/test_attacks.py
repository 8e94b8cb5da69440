"""The attack table, in every tier and at every level of confinement; and bare, to see it work."""

import os
import platform
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from attacks.bare import run_bare
from attacks.outside import REACHED, SECRET, Outside
from attacks.table import ATTACKS, RAW, Attack
from attacks.tiers import LEVELS, TIERS, running, unhurried
from guests import Host, run, value_of

from toolfold.sandbox.sandbox import GuestOutcome, Sandbox

BARE = [row for row in ATTACKS if row.bare and (os.getuid() == 0 or not row.needs_root)]


def each(rows: list[Attack]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("attack", [pytest.param(row, id=row.name) for row in rows])


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOST_SECRET", SECRET)
        outside = Outside()
        yield outside
        outside.close()


@pytest.fixture(scope="module", params=TIERS)
async def tier(
    request: pytest.FixtureRequest, outside: Outside, anyio_backend: str
) -> AsyncIterator[tuple[str, Sandbox]]:
    """A sandbox that starts when everything outside is there to be inherited."""
    async with running(request.param) as sandbox:
        yield request.param, sandbox


def aimed(code: str, outside: Outside) -> str:
    for name, place in outside.places.items():
        code = code.replace(f"@{name}@", place)
    return code


async def ended(sandbox: Sandbox, code: str, host: Host) -> GuestOutcome:
    """Run hostile code, which must end, and see that the next run works."""
    with anyio.fail_after(60):
        outcome = await run(sandbox, code, host)
        assert await value_of(unhurried(sandbox), "1 + 1") == 2
    return outcome


def test_the_table_is_long() -> None:
    assert len(ATTACKS) >= 120


@pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls have other numbers")
@each(BARE)
def test_without_walls_the_attack_works(outside: Outside, attack: Attack) -> None:
    shown = run_bare(aimed(attack.code, outside))

    assert REACHED in shown or SECRET in shown or outside.marks_soon(), shown
    outside.marks()


@each(ATTACKS)
async def test_nothing_outside_is_reached(
    tier: tuple[str, Sandbox], outside: Outside, attack: Attack
) -> None:
    name, sandbox = tier
    if name in attack.open_at:
        pytest.skip(f"not promised at the level {name!r}")
    host = Host()

    outcome = await ended(sandbox, aimed(attack.code, outside), host)

    assert outside.marks() == []
    told = outcome.failure and outcome.failure.message  # a traceback quotes the code itself
    shown = repr((outcome.output, outcome.value, told, host.calls))
    assert REACHED not in shown
    assert SECRET not in shown


@pytest.mark.parametrize("level", LEVELS)
async def test_raw_system_calls_can_be_tried_at_all(level: str) -> None:
    """Or most of the table would show nothing."""
    async with running(level) as sandbox:
        assert await value_of(sandbox, f"{RAW}call(39) == os.getpid()") is True
