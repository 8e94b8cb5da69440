"""Processes that hold the variables of CPython sessions between runs."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from toolfold.sandbox.sandbox import Parked

_LOOK_S: Final = 30.0


class _Waiting(NamedTuple):
    since: float
    generation: str
    parked: Parked


class ParkedProcesses:
    """Keeps a few of them, the last used; those that wait for long are ended.

    Another process may have gone on with a session meanwhile: what waits is good for one generation
    of its variables only.
    """

    def __init__(
        self, most: int, *, idle_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._idle_s = idle_s
        self._clock = clock
        self._waiting: dict[Path, _Waiting] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have room for the length of this context; what waits at its end is ended with it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_tidy)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                self._let_go(len(self._waiting))

    def park(self, key: Path, generation: str, parked: Parked) -> None:
        """Let a process wait under a key; the one that waited longest may have to go."""
        before = self._waiting.pop(key, None)
        if before is not None and before.parked is not parked:
            before.parked.close()
        self._waiting[key] = _Waiting(self._clock(), generation, parked)
        self._let_go(len(self._waiting) - self._most)

    def put_back(self, key: Path, generation: str, parked: Parked) -> None:
        """Let one wait again that was taken and not used, unless it has ended."""
        if key not in self._waiting and parked.is_alive:
            self.park(key, generation, parked)

    def take(self, key: Path, generation: str) -> Parked | None:
        """Return what waits under a key, which then does not any more; None if nothing does."""
        found = self._waiting.pop(key, None)
        if found is None:
            return None
        if found.generation != generation or not found.parked.is_alive:
            found.parked.close()
            return None
        return found.parked

    def forget(self, key: Path) -> None:
        """End what waits under a key."""
        found = self._waiting.pop(key, None)
        if found is not None:
            found.parked.close()

    def _let_go(self, number: int) -> None:
        for key in list(self._waiting)[: max(0, number)]:
            self.forget(key)

    async def _keep_tidy(self) -> None:
        while True:
            await anyio.sleep(_LOOK_S)
            longest = self._clock() - self._idle_s
            self._let_go(sum(each.since < longest for each in self._waiting.values()))
