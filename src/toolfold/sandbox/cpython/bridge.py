"""The guest's end of the bridge: calls go out, answers come in. Standard library only.

Whichever thread waits for an answer reads for all: it hands over what is for others, and when it
has its own, one of the others reads on.
"""

import os
import select
import socket
import threading
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.frames import HEADER, frame

_CHUNK: Final = 65_536
_EXCEPTIONS: Final = {
    kind.__name__: kind
    for kind in (RuntimeError, TimeoutError, TypeError, NameError, ModuleNotFoundError, ValueError)
}
Outcome = tuple[bool, Any]
"""Whether a call gave a value, and the value or the exception."""


class Bridge:
    """Frames to and from the host."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
        self._buffer = b""
        self._sending = threading.Lock()
        self._reading = threading.Lock()
        self._turn = threading.Condition(threading.Lock())
        self._waiting = 0
        self._last_id = 0
        self._answers: dict[int, Outcome] = {}
        self._expecting: dict[int, Callable[[Outcome], None]] = {}

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Send a frame, whole."""
        rest = memoryview(frame(kind, payload))
        with self._sending:
            while rest:
                try:
                    rest = rest[self._socket.send(rest, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    self._make_room()

    def receive(self) -> tuple[int, Any]:
        """Wait for a frame; end with the host."""
        while len(self._buffer) < HEADER.size:
            self._fill()
        length, kind = HEADER.unpack_from(self._buffer)
        end = HEADER.size + length
        if len(self._buffer) < end:
            self._fill_to(end)
        payload, self._buffer = self._buffer[HEADER.size : end], self._buffer[end:]
        return kind, frames.read_message(payload)

    def next_id(self) -> int:
        """Return a number for a call."""
        with self._sending:
            self._last_id += 1
            return self._last_id

    def expect(self, call_id: int, then: Callable[[Outcome], None]) -> None:
        """Have `then` called with the outcome of a call, in whichever thread reads it."""
        self._expecting[call_id] = then

    def wait_for(self, call_id: int) -> Any:
        """Return the value of a call, or raise what became of it."""
        while call_id not in self._answers:
            self.pump(None, lambda: call_id in self._answers)
        is_value, outcome = self._answers.pop(call_id)
        if is_value:
            return outcome
        raise outcome

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
                self._fill()
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
        call_id = message[0]
        if kind == frames.ANSWER:
            outcome: Outcome = (True, _unmarked(message[2]) if message[1] else message[2])
        else:
            outcome = (False, _EXCEPTIONS.get(message[1], RuntimeError)(message[2]))
        then = self._expecting.pop(call_id, None)
        if then is None:
            self._answers[call_id] = outcome
        else:
            then(outcome)

    def _fill(self) -> None:
        received = os.read(self._descriptor, _CHUNK)
        if not received:
            os._exit(0)
        self._buffer += received

    def _fill_to(self, size: int) -> None:
        parts, missing = [self._buffer], size - len(self._buffer)
        while missing > 0:
            received = os.read(self._descriptor, max(_CHUNK, min(missing, 1 << 20)))
            if not received:
                os._exit(0)
            parts.append(received)
            missing -= len(received)
        self._buffer = b"".join(parts)


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
    return namedtuple(name, fields)
