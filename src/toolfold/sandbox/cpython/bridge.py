"""The guest's end of the bridge: calls go out, answers come in. Standard library only.

Whichever thread waits for an answer reads for all: it hands over what is for others, and when it
has its own, one of the others reads on.
"""

import asyncio
import os
import select
import socket
import threading
from asyncio import base_events
from collections import deque, namedtuple
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, Final

from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.frames import HEADER, frame

_CHUNK: Final = 4_096  # most answers are small, and to allocate more takes time
_LARGE_CHUNK: Final = 1 << 18
_NOT_WAITING: Final = socket.MSG_DONTWAIT
_EXCEPTIONS: Final = {
    kind.__name__: kind
    for kind in (RuntimeError, TimeoutError, TypeError, NameError, ModuleNotFoundError, ValueError)
}
CallResult = tuple[bool, Any]
"""Whether a call gave a value, and the value or the exception."""


class Bridge:
    """Frames to and from the host."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
        self._buffer = bytearray()
        self._sending = threading.Lock()
        self._reading = threading.Lock()
        self._turn = threading.Condition(threading.Lock())
        self._waiting = 0
        self.next_id = count(1).__next__
        """Returns a number for a call."""
        self._answers: dict[int, CallResult] = {}
        self._expecting: dict[int, Callable[[CallResult], None]] = {}
        self._programs: deque[Any] = deque()

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Send a frame, whole."""
        self.send_frame(frame(kind, payload))

    def send_frame(self, whole: bytes) -> None:
        """Send what is a frame already."""
        with self._sending:
            try:
                sent = self._socket.send(whole, _NOT_WAITING)
            except BlockingIOError:
                sent = 0
            while sent < len(whole):
                self._make_room()
                with suppress(BlockingIOError):
                    sent += self._socket.send(memoryview(whole)[sent:], _NOT_WAITING)

    def receive(self) -> tuple[int, Any]:
        """Wait for a frame; end with the host."""
        buffer = self._buffer
        if not buffer:
            received = self._read(_CHUNK)
            if len(received) > HEADER.size:
                length, kind = HEADER.unpack_from(received)
                if len(received) == HEADER.size + length:  # as nearly always
                    return kind, frames.read_message(memoryview(received)[HEADER.size :])
            buffer += received
        while len(buffer) < HEADER.size:
            buffer += self._read(_CHUNK)
        length, kind = HEADER.unpack_from(buffer)
        end = HEADER.size + length
        while len(buffer) < end:
            buffer += self._read(max(_CHUNK, min(end - len(buffer), _LARGE_CHUNK)))
        payload = bytes(buffer[HEADER.size : end])
        del buffer[:end]
        return kind, frames.read_message(payload)

    def next_program(self) -> Any:
        """Wait for a program. Threads of an earlier one may be reading still."""
        while not self._programs:
            self.pump(None, lambda: bool(self._programs))
        return self._programs.popleft()

    def expect(self, call_id: int, then: Callable[[CallResult], None]) -> None:
        """Have `then` called with the outcome of a call, in whichever thread reads it."""
        self._expecting[call_id] = then

    def wait_for(self, call_id: int) -> Any:
        """Return the value of a call, or raise what became of it."""
        is_value, outcome = self._read_until(call_id) or self._wait_until(call_id)
        if is_value:
            return outcome
        raise outcome

    def _read_until(self, call_id: int) -> CallResult | None:
        """Read until the answer to a call comes; None if another thread is reading."""
        if not self._reading.acquire(blocking=False):
            return None
        try:
            while call_id not in self._answers:
                kind, message = self.receive()
                if message[0] == call_id and kind != frames.RUN:
                    return _outcome(kind, message)
                self._take(kind, message)
            return self._answers.pop(call_id)
        finally:
            self._reading.release()
            self.wake()

    def _wait_until(self, call_id: int) -> CallResult:
        while call_id not in self._answers:
            self.pump(None, lambda: call_id in self._answers)
        return self._answers.pop(call_id)

    def pump(
        self, timeout_s: float | None, is_done: Callable[[], bool], also: int | None = None
    ) -> None:
        """Wait until `is_done`, a frame came, or the time is over; or `also` can be read."""
        if self._reading.acquire(blocking=False):
            try:
                if not is_done() and self._can_read(timeout_s, also):
                    self._take(*self.receive())
            finally:
                self._reading.release()
                self.wake()
            return
        with self._turn:
            self._waiting += 1
            try:
                # The reader may have left between the two locks; it looks again soon.
                if not is_done():
                    self._turn.wait(0.01 if timeout_s is None else min(timeout_s, 0.01))
            finally:
                self._waiting -= 1

    def wake(self) -> None:
        """Have every thread that waits look again."""
        if self._waiting:
            with self._turn:
                self._turn.notify_all()

    def _make_room(self) -> None:
        """Wait until something can be sent. The host may wait meanwhile for us to read."""
        poll = select.poll()
        reads = self._reading.acquire(blocking=False)
        poll.register(self._descriptor, select.POLLOUT | (select.POLLIN if reads else 0))
        try:
            [(_, events)] = poll.poll()
            if events & select.POLLIN:
                self._buffer += self._read(_LARGE_CHUNK)
        finally:
            if reads:
                self._reading.release()

    def _can_read(self, timeout_s: float | None, also: int | None) -> bool:
        if self._buffer or (timeout_s is None and also is None):
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if also is not None:
            poll.register(also, select.POLLIN)
        ready = poll.poll(None if timeout_s is None else max(0.0, timeout_s * 1000))
        return any(descriptor == self._descriptor for descriptor, _ in ready)

    def _take(self, kind: int, message: Any) -> None:
        if kind == frames.RUN:
            self._programs.append(message)
            return
        then = self._expecting.pop(message[0], None)
        if then is None:
            self._answers[message[0]] = _outcome(kind, message)
        else:
            then(_outcome(kind, message))

    def _read(self, most: int) -> bytes:
        received = os.read(self._descriptor, most)
        if not received:
            os._exit(0)
        return received


def _outcome(kind: int, message: Any) -> CallResult:
    if kind == frames.ANSWER:
        return True, _unmarked(message[2]) if message[1] else message[2]
    return False, _EXCEPTIONS.get(message[1], RuntimeError)(message[2])


def _unmarked(value: Any) -> Any:
    if isinstance(value, tuple):
        kind, parts = value
        items = [_unmarked(part) for part in parts]
        return tuple(items) if kind is None else _named(*kind)(*items)
    if isinstance(value, list):
        return [_unmarked(part) for part in value]
    if isinstance(value, dict):
        return {key: _unmarked(part) for key, part in value.items()}
    return value


@cache
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields, module="__main__")  # the name alone is shown


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
