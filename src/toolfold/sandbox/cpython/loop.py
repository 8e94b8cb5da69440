"""The event loop of guest code: it waits on the bridge, and needs no socket of its own."""

import asyncio
import os
from asyncio import base_events
from collections import deque
from collections.abc import Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from toolfold.sandbox.cpython.bridge import Bridge, CallResult


class GuestLoop(base_events.BaseEventLoop):
    """Runs tasks; between them it takes answers from the bridge."""

    _ready: deque[Any]

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector = self  # what BaseEventLoop asks for events

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for answers, for the time at most, or until a thread wants something."""
        if timeout is None or timeout > 0:
            self._bridge.pump(timeout, lambda: bool(self._ready), self._wake)
            with suppress(BlockingIOError):
                os.eventfd_read(self._wake)
        else:  # tasks that are always ready would see no answer otherwise
            self._bridge.pump(0, lambda: False)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Answers are taken where they are read."""

    def _write_to_self(self) -> None:
        os.eventfd_write(self._wake, 1)
        self._bridge.wake()

    def let_go_of_threads(self) -> None:
        """Start threads anew when some are wanted: those there were have ended."""
        self._default_executor = None

    def close(self) -> None:
        """Close, with what it wakes up by."""
        if not self.is_closed():
            super().close()
            os.close(self._wake)


asyncio_run = asyncio.run


def run(main: Coroutine[Any, Any, Any], **options: Any) -> Any:
    """Stand in for `asyncio.run`, also where a loop runs already because the program awaits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio_run(main, **options)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio_run(main, **options)).result()


class PendingCall(Coroutine[Any, Any, Any]):
    """A call whose value is awaited. It is under way already; a task can be made of it."""

    def __init__(self, bridge: Bridge, call_id: int) -> None:
        self._outcome: CallResult | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._steps: Generator[Any, Any, Any] | None = None
        bridge.expect(call_id, self._settle)

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._outcome is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        assert self._outcome is not None  # noqa: S101
        is_value, outcome = self._outcome
        if is_value:
            return outcome
        raise outcome

    def _settle(self, outcome: CallResult) -> None:
        self._outcome = outcome
        for waiter in self._waiters:
            loop = waiter.get_loop()
            if asyncio._get_running_loop() is loop:  # noqa: SLF001
                _wake(waiter)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_wake, waiter)

    def _running(self) -> Generator[Any, Any, Any]:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps

    def send(self, value: Any) -> Any:
        """Go on, as a coroutine does."""
        return self._running().send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception."""
        return self._running().throw(*error)

    def close(self) -> None:
        """Be awaited no more; the call itself goes on."""
        self._running().close()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
