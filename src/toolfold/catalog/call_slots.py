"""Whose turn it is at one server: so many calls at a time, and of those that write one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType

import anyio


class CallSlots:
    """The turns at one server."""

    def __init__(self, *, concurrency: int, serialize_writes: bool) -> None:
        # Not locks: a question of the server is heard by another task than the call's.
        self._places = anyio.Semaphore(concurrency, fast_acquire=True)
        self._writing = anyio.Semaphore(1, fast_acquire=True) if serialize_writes else None

    def take(self, *, is_write: bool) -> "CallSlot":
        """Return a turn to enter; writers wait for each other first."""
        return CallSlot(self._places, self._writing if is_write else None)


class CallSlot:
    """One call's turn, held for the length of its context."""

    def __init__(self, places: anyio.Semaphore, writing: anyio.Semaphore | None) -> None:
        self._places = places
        self._writing = writing
        self._is_held = False
        self._is_over = False
        self._pauses = 0

    async def __aenter__(self) -> "CallSlot":
        await self._acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._release()

    @asynccontextmanager
    async def yielded(self) -> AsyncIterator[None]:
        """Let others have their turns in this context, which lasts as long as a person thinks."""
        self._pauses += 1
        self._release()
        try:
            yield
        finally:
            self._pauses -= 1
        if not self._pauses and not self._is_over:
            await self._acquire()

    async def _acquire(self) -> None:
        if self._writing is not None:
            await acquired(self._writing)
        try:
            await acquired(self._places)
        except BaseException:
            if self._writing is not None:
                self._writing.release()
            raise
        self._is_held = True
        if self._is_over:  # the call ended while its question waited for the turn
            self._release()

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._places.release()
            if self._writing is not None:
                self._writing.release()


async def acquired(turn: anyio.Semaphore | anyio.Lock) -> None:
    """Acquire at once what is free: even the fast way of waiting looks through all scopes first."""
    try:
        turn.acquire_nowait()
    except anyio.WouldBlock:
        await turn.acquire()
