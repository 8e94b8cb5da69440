"""The host's side of the zygote: start it, have it fork guests, keep a few of them ready."""

import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread

from toolfold.errors import RunCrashed
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.frames import HEADER

Level = Literal["namespaces", "landlock"]

_BOOT_S: Final = 30.0
_SPAWN_S: Final = 10.0
_FAULT_S: Final = 300.0  # a machine may have been too busy, or the user has changed something
_PACKAGES: Final = ("numpy", "pandas", "dateutil", "pytz", "six", "tzdata")
_BOOT: Final = (
    "import json, sys; sys.path.insert(0, json.loads(sys.argv[1])['source']); "
    "from toolfold.sandbox.cpython.zygote import main; main()"
)


class WallsMissing(Exception):
    """The walls cannot be raised here; the message says which and why."""


class ZygoteGone(RunCrashed):
    """The process that starts guests does not answer, and must not be asked again."""

    def __init__(self) -> None:
        super().__init__("The process that starts guests has ended.")


@dataclass(slots=True)
class Guest:
    """One confined process that waits for its first program, or runs one."""

    pid: int
    descriptor: int
    """Of the process, so that no other is ever killed in its place."""
    bridge: socket.socket

    def kill(self) -> None:
        """End it, whatever it does."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Let it stand still: its threads too have no business between programs."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.descriptor >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.descriptor, number)

    def close(self) -> None:
        """End it and let go of it."""
        self.kill()
        self.bridge.close()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        poll = select.poll()  # select() takes no numbers above 1,023
        poll.register(self.descriptor, select.POLLIN)
        return not poll.poll(0)

    @property
    def cpu_s(self) -> float:
        """Return the processor time that it has used, all threads together."""
        # This is how the kernel numbers the processor clock of another process.
        return time.clock_gettime((~self.pid << 3) | 2)


class Zygote:
    """The process that forks guests. Its methods block, and may be called from any thread."""

    def __init__(self, level: Level, *, cpu_s: int) -> None:
        """Start it.

        Raises:
            WallsMissing: It cannot raise its walls.
        """
        self.level = level
        self._turn = threading.Lock()
        self._guests: list[Guest] = []
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told = {
            "control": theirs.fileno(),
            "source": str(Path(__file__).parents[3]),
            "packages": found_packages(),
            "namespaces": level == "namespaces",
            "cpu_s": cpu_s,
        }
        flags = ("-I", "-S", "-X", "utf8")
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # it is this very interpreter
                [sys.executable, *flags, "-c", _BOOT, json.dumps(told)],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control.settimeout(_BOOT_S)
        try:
            answer = self._control.recv(8_192)
        except OSError as error:
            answer = f"failed: {error}".encode()
        assert self._process.stderr is not None  # noqa: S101
        with self._process.stderr as last_words:
            if answer != b"ready":
                self.close()
                said = (answer or last_words.read(4_000)).decode("utf-8", "replace").strip()
                raise WallsMissing(said.removeprefix("failed: ").rpartition("\n")[2] or "it died")

    def spawn(self) -> Guest:
        """Fork a guest, and wait until it stands behind its walls.

        Raises:
            WallsMissing: It does not.
            ZygoteGone: The zygote does not answer.
            RunCrashed: This process lacks what a guest takes.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise RunCrashed(f"No guest can be started: {error}.") from error
        try:
            with theirs, self._turn:
                self._control.settimeout(_SPAWN_S)
                socket.send_fds(self._control, [b"guest"], [theirs.fileno()])
                answer, descriptors, flags, _ = socket.recv_fds(self._control, 4_096, 1)
        except OSError as error:
            ours.close()
            raise ZygoteGone from error
        if not descriptors:
            ours.close()  # of which a guest that there may be hears
            if not answer:
                raise ZygoteGone
            if flags & socket.MSG_CTRUNC:
                raise RunCrashed("No guest can be started: too many files are open.")
            raise WallsMissing(answer.decode("utf-8", "replace").removeprefix("failed: "))
        guest = Guest(int(answer), descriptors[0], ours)
        self._guests = [each for each in self._guests if each.descriptor >= 0] + [guest]
        try:
            _await_ready(ours)
        except BaseException:
            guest.close()
            raise
        ours.setblocking(False)
        return guest

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    @property
    def has_guests(self) -> bool:
        """Whether somebody uses a guest of it."""
        return any(guest.descriptor >= 0 for guest in self._guests)

    def kill(self) -> None:
        """End it at once, and with it every guest."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End it, and with it every guest."""
        self._control.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _await_ready(bridge: socket.socket) -> None:
    bridge.settimeout(_SPAWN_S)
    received = b""
    try:
        while not _is_whole(received):
            chunk = bridge.recv(8_192)
            if not chunk:
                raise WallsMissing("the guest died before it was ready")
            received += chunk
    except OSError as error:
        raise WallsMissing(f"the guest did not get ready: {error}") from error
    if HEADER.unpack_from(received)[1] != frames.READY:
        raise WallsMissing(received[HEADER.size :].decode("utf-8", "replace"))


def _is_whole(received: bytes) -> bool:
    size = HEADER.size
    return len(received) >= size and len(received) >= size + HEADER.unpack_from(received)[0]


@cache
def found_packages() -> Mapping[str, str]:
    """Return where the packages are that guests may import, by name."""
    found = {}
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            origin = Path(spec.origin)
            home = origin.parents[1] if origin.name == "__init__.py" else origin.parent
            found[name] = str(home)
    return found


class GuestPool:
    """Guests that are ready, and the zygote that more come from."""

    def __init__(self, levels: tuple[Level, ...], *, ready: int, cpu_s: int) -> None:
        self._levels = levels
        self._cpu_s = cpu_s
        self._wanted = ready
        self._ready: deque[Guest] = deque()
        self._zygote: Zygote | None = None
        self._retired: list[Zygote] = []
        self._starting = anyio.Lock()
        self._threads = anyio.CapacityLimiter(2)
        self._emptied: anyio.Event | None = None
        self._fault: tuple[str, float] | None = None
        self._shortfall: str | None = None

    @property
    def fault(self) -> str | None:
        """Say why there are no guests; None if there are, or it is time to try again."""
        if self._fault is None or time.monotonic() - self._fault[1] > _FAULT_S:
            return None
        return self._fault[0]

    @property
    def level(self) -> Level | None:
        """Return which walls stand; None before the first guest."""
        return self._zygote.level if self._zygote else None

    @property
    def shortfall(self) -> str | None:
        """Say why no better walls stand; None if they do."""
        return self._shortfall

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep guests ready from the first that is taken, for the length of this context."""
        self._emptied = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_ready)
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._close)

    async def take(self) -> Guest:
        """Return a guest that nobody has used.

        Raises:
            WallsMissing: None can be had here.
        """
        guest = self._take_ready() or await self._spawn()
        if self._emptied is not None:
            self._emptied.set()
        return guest

    def _take_ready(self) -> Guest | None:
        while self._ready:
            guest = self._ready.popleft()
            # Guests die with their zygote, but not at the same moment.
            if guest.is_alive and self._zygote is not None and self._zygote.is_alive:
                return guest
            guest.close()
        return None

    async def _keep_ready(self) -> None:
        while True:
            assert self._emptied is not None  # noqa: S101
            await self._emptied.wait()
            self._emptied = anyio.Event()
            with suppress(WallsMissing, RunCrashed):  # who takes the next one hears of it
                while len(self._ready) < self._wanted:
                    self._ready.append(await self._spawn())

    async def _spawn(self) -> Guest:
        zygote = await self._started()
        if self._retired:
            await anyio.to_thread.run_sync(self._bury, limiter=self._threads)
        try:
            return await self._in_thread(zygote)
        except ZygoteGone:
            # Somebody killed or stopped it. Whoever notices first starts another.
            if self._zygote is zygote:
                self._zygote = None
                self._retired.append(zygote)
            await anyio.to_thread.run_sync(self._bury, limiter=self._threads)
            return await self._in_thread(await self._started())

    def _bury(self) -> None:
        """End zygotes that start no more guests, when nobody uses one of theirs."""
        for zygote in list(self._retired):
            if not (zygote.is_alive and zygote.has_guests):
                with suppress(ValueError):  # somebody else does it
                    self._retired.remove(zygote)
                    zygote.kill()

    async def _in_thread(self, zygote: Zygote) -> Guest:
        return await anyio.to_thread.run_sync(zygote.spawn, limiter=self._threads)

    async def _started(self) -> Zygote:
        async with self._starting:
            if self._zygote is None:
                self._zygote = await anyio.to_thread.run_sync(self._start)
            return self._zygote

    def _start(self) -> Zygote:
        """Start a zygote behind the best walls there are, and see that a guest comes of it."""
        faults = []
        for level in self._levels:
            zygote = None
            try:
                zygote = Zygote(level, cpu_s=self._cpu_s)
                zygote.spawn().close()
            except (WallsMissing, RunCrashed, OSError) as error:
                faults.append(f"{level}: {error}")
                if zygote is not None:
                    zygote.close()
                continue
            self._fault, self._shortfall = None, "; ".join(faults) or None
            return zygote
        why = "; ".join(faults)
        self._fault = (why, time.monotonic())
        raise WallsMissing(why)

    def _close(self) -> None:
        while self._ready:
            self._ready.popleft().close()
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
        while self._retired:
            self._retired.pop().kill()


def cpu_allowance_s(guest_time_s: float) -> int:
    """Return the processor time after which the kernel ends a guest, were the host asleep."""
    return math.ceil(guest_time_s * 20) + 10
