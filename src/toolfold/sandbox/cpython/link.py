"""Link: the host's end of the bridge to one guest: its messages, its clock, its files."""

# The loop reads the socket itself, without a thread: a call costs one wake-up.
import asyncio
import errno
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import anyio

from toolfold.sandbox.cpython.frames import SLICE_BYTES, FrameBreach, FrameReader
from toolfold.sandbox.cpython.pool import Guest
from toolfold.sandbox.files import Drafts
from toolfold.sandbox.sandbox import FileStatus, GuestFiles

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


_LOOK_S: Final = 1.0


class GuestClock:
    """The time in which the guest itself runs: whenever the host owes it nothing.

    A guest with threads can compute while the host owes it an answer, so its processor time has
    the same limit.
    """

    def __init__(self, guest: Guest, limit_s: float, on_end: Callable[[], None]) -> None:
        self._guest = guest
        self._limit_s = limit_s
        self._on_end = on_end
        self._owed = 0
        self._busy_s = 0.0
        self._since = self._began = self._ended = 0.0
        self._cpu_before_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def guest_s(self) -> float:
        running = 0.0 if self._owed or self._ended else time.perf_counter() - self._since
        return self._busy_s + running

    @property
    def waiting_s(self) -> float:
        return max(0.0, self._ended - self._began - self._busy_s)

    def start(self) -> None:
        self._began = self._since = time.perf_counter()
        self._cpu_before_s = self._cpu_s()
        self._look_again()

    def wait(self) -> None:
        """The host owes the guest one answer more."""
        if not self._owed:
            self._busy_s += time.perf_counter() - self._since
        self._owed += 1

    def resume(self) -> None:
        """The host owes it one less."""
        self._owed -= 1
        if not self._owed:
            self._since = time.perf_counter()

    def charge(self, seconds: float) -> None:
        """Count what the host itself computed for the guest."""
        self._busy_s += seconds

    def stop(self) -> None:
        self._busy_s = self.guest_s
        self._ended = time.perf_counter()
        if self._timer is not None:
            self._timer.cancel()

    def _look_again(self) -> None:
        left = self._limit_s - max(self.guest_s, self._cpu_s() - self._cpu_before_s)
        if left <= 0:
            self._on_end()
        else:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(left, _LOOK_S), self._look_again)

    def _cpu_s(self) -> float:
        try:
            return self._guest.cpu_s
        except OSError:
            return self._cpu_before_s


_MAX: Final = 1 << 53
_AT_END: Final = -1


class FileRequest(NamedTuple):
    """What a guest asks."""

    what: str
    path: str
    target: str
    offset: int
    size: int
    content: bytes


class FileService:
    """Answers in a thread, one question of a session after the other."""

    def __init__(self, files: GuestFiles) -> None:
        self._drafts = drafts = Drafts(files)
        at = drafts.settled
        self._verbs: dict[str, Callable[[FileRequest], Any]] = {
            "stat": lambda ask: _told(at(ask.path).stat(ask.path)),
            "entries": lambda ask: [
                (name, *_told(status)) for name, status in at(ask.path).entries(ask.path)
            ],
            "read": lambda ask: at(ask.path).read(ask.path, ask.offset, ask.size),
            "make": lambda ask: at(ask.path).make(ask.path),
            "mkdir": lambda ask: at(ask.path).mkdir(ask.path),
            "unlink": lambda ask: at(ask.path).unlink(ask.path),
            "rmdir": lambda ask: at(ask.path).rmdir(ask.path),
            "rename": lambda ask: at(ask.path, ask.target).rename(ask.path, ask.target),
            "begin": lambda ask: drafts.begin(ask.path),
            "finish": lambda ask: drafts.finish(ask.path),
            "truncate": lambda ask: drafts.truncate(ask.path, ask.offset),
            "write": lambda ask: drafts.write(
                ask.path, ask.content, None if ask.offset < 0 else ask.offset
            ),
        }

    def check(self, question: FileRequest) -> None:
        """Make sure that a question can be asked at all.

        Raises:
            FrameBreach: It cannot.
        """
        lowest = _AT_END if question.what == "write" else 0
        is_sound = lowest <= question.offset < _MAX and 0 <= question.size <= SLICE_BYTES
        if question.what not in self._verbs or not is_sound:
            raise FrameBreach("a question of another shape")

    def answer(self, question: FileRequest) -> tuple[int, Any]:
        """Return 0 and an answer, or the number of an error and words."""
        try:
            return 0, self._verbs[question.what](question)
        except OSError as error:
            return error.errno or errno.EIO, error.strerror or str(error)

    @property
    def is_writing(self) -> bool:
        """Whether there is anything to finish."""
        return self._drafts.is_writing

    def finish(self) -> None:
        """Finish what the program was writing."""
        self._drafts.finish_all()


def _told(status: FileStatus) -> tuple[bool, int, float]:
    return status.is_dir, status.size, status.changed_at
