"""Link: the host's end of the bridge to one guest, on the event loop."""

# The loop reads the socket itself, without a thread: a call costs one wake-up.
import asyncio
from collections.abc import Callable
from typing import Final

import anyio

from toolfold.sandbox.cpython.frames import FrameBreach, FrameReader
from toolfold.sandbox.cpython.pool import Guest

_CHUNK: Final = 65_536
_BACKLOG_BYTES: Final = 4 << 20


class GuestLink:
    """Frames from and to a guest. Whoever does not read what it is sent is not read either."""

    def __init__(self, guest: Guest, *, value_bytes: int) -> None:
        self._socket = guest.bridge
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(value_bytes)
        self._backlog = bytearray()
        self._drained: anyio.Event | None = None
        self._is_held = False
        self._is_reading = False
        self._is_open = True
        self.on_frame: Callable[[int, bytes], None] = _nobody
        self.on_breach: Callable[[str], None] = lambda _why: None
        self.on_lost: Callable[[], None] = lambda: None
        self._read()

    @property
    def is_open(self) -> bool:
        """Whether anything is heard and said still."""
        return self._is_open

    def send(self, frame: bytes) -> None:
        """Send a frame, now or when the guest takes it."""
        if not self._is_open:
            return
        if not self._backlog:
            try:
                sent = self._socket.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # it is gone, which the reader hears too
            if sent == len(frame):
                return
            frame = frame[sent:]
            self._loop.add_writer(self._socket, self._write)
        self._backlog += frame
        if len(self._backlog) > _BACKLOG_BYTES:
            self._pause()

    async def drained(self) -> None:
        """Wait until there is room to send more."""
        while len(self._backlog) > _BACKLOG_BYTES:
            self._drained = self._drained or anyio.Event()
            await self._drained.wait()

    def hold(self, is_held: bool) -> None:
        """Do not read while `is_held`."""
        if is_held != self._is_held:
            self._is_held = is_held
            if is_held:
                self._pause()
            else:
                self._read()

    def close(self) -> None:
        """Hear and say no more."""
        if self._is_open:
            self._is_open = False
            self._pause()
            self._loop.remove_writer(self._socket)
            self._backlog.clear()
            self._wake()

    def _read(self) -> None:
        is_free = not self._is_held and len(self._backlog) <= _BACKLOG_BYTES
        if self._is_open and is_free and not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._socket, self._readable)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket)

    def _readable(self) -> None:
        try:
            received = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._pause()
            self.on_lost()
            return
        try:
            for kind, payload in self._reader.feed(received):
                self.on_frame(kind, payload)
                if not self._is_open:
                    return
        except FrameBreach as breach:
            self._pause()
            self.on_breach(str(breach))

    def _write(self) -> None:
        try:
            sent = self._socket.send(self._backlog)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._backlog)
        del self._backlog[:sent]
        if not self._backlog:
            self._loop.remove_writer(self._socket)
        if len(self._backlog) <= _BACKLOG_BYTES:
            self._read()
            self._wake()

    def _wake(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained = None


def _nobody(_kind: int, _payload: bytes) -> None:
    raise FrameBreach("it speaks unasked")
