"""The places where attacks run: each tier, and each level of confinement that this machine has."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, get_args

import pytest
from guests import LIMITS

from toolfold.config.settings import Limits
from toolfold.errors import RunCrashed
from toolfold.sandbox.cpython.pool import Level
from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import Sandbox

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
TIERS: Final = ("monty", *LEVELS)
TIGHT: Final = replace(LIMITS, guest_time_s=0.3, wall_time_s=2.0, calls=200, sleep_s=0.2)
TIGHTER: Final = replace(TIGHT, guest_time_s=0.15)
"""For what never ends by itself, and does its worst at once."""


@asynccontextmanager
async def running(tier: str, limits: Limits = TIGHT) -> AsyncIterator[Sandbox]:
    """Run a sandbox; skip the test where this machine lacks its walls."""
    if tier == "monty":
        monty = MontySandbox(limits, workers=2)
        async with monty.running():
            yield monty
    else:
        cpython = CPythonSandbox(limits, workers=2, levels=(level_of(tier),))
        async with cpython.running():
            try:
                await cpython.warm()
            except RunCrashed as error:
                pytest.skip(f"{tier}: {error}")
            yield cpython


def level_of(tier: str) -> Level:
    """Return the level of confinement that `tier` names."""
    return next(level for level in LEVELS if level == tier)


def unhurried(sandbox: Sandbox) -> Sandbox:
    """Return the same sandbox for code that means well, whatever else this machine does."""
    assert isinstance(sandbox, MontySandbox | CPythonSandbox)
    return sandbox.within(LIMITS)
