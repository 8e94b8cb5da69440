"""End a host that stands still.

The interpreter's client turns guest values into Python objects before anybody can look at them. It
takes hours to hash a set of nested tuples, in C and with the interpreter lock held, so that no
thread of ours can step in. The timer of `faulthandler` needs no lock. The event loop winds it up
again and again; when the loop stands still for too long, the process ends, and whoever needs it
starts another.
"""

import faulthandler
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


@asynccontextmanager
async def ending_when_stalled(stall_s: float) -> AsyncIterator[None]:
    """End this process if its event loop stands still for `stall_s` within this context."""

    async def wind_up() -> None:
        while True:
            faulthandler.dump_traceback_later(math.ceil(stall_s), exit=True)
            await anyio.sleep(stall_s / 4)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wind_up)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            tasks.cancel_scope.cancel()
