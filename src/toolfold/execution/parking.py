"""Processes that hold the variables of CPython sessions between runs."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from toolfold.sandbox.sandbox import Parked

_LOOK_S: Final = 30.0


class Parking:
    """Keeps a few of them, the last used; those that wait for long are ended."""

    def __init__(
        self, most: int, *, idle_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._idle_s = idle_s
        self._clock = clock
        self._parked: dict[Path, tuple[float, Parked]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have room for the length of this context; what waits at its end is ended with it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_tidy)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                self._let_go(len(self._parked))

    def park(self, key: Path, parked: Parked) -> None:
        """Let a process wait under a key; the one that waited longest may have to go."""
        _, before = self._parked.pop(key, (0.0, None))
        if before is not None and before is not parked:
            before.close()
        self._parked[key] = self._clock(), parked
        self._let_go(len(self._parked) - self._most)

    def put_back(self, key: Path, parked: Parked) -> None:
        """Let one wait again that was taken and not used, unless it has ended."""
        if key not in self._parked and parked.is_alive:
            self.park(key, parked)

    def take(self, key: Path) -> Parked | None:
        """Return what waits under a key, which then does not any more; None if nothing does."""
        _, parked = self._parked.pop(key, (0.0, None))
        if parked is not None and not parked.is_alive:
            parked.close()
            return None
        return parked

    def _let_go(self, number: int) -> None:
        for key in list(self._parked)[: max(0, number)]:
            self._parked.pop(key)[1].close()

    async def _keep_tidy(self) -> None:
        while True:
            await anyio.sleep(_LOOK_S)
            longest = self._clock() - self._idle_s
            self._let_go(sum(since < longest for since, _ in self._parked.values()))
