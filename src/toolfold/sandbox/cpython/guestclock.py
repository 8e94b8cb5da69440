"""GuestClock: the time in which guest code itself runs."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from toolfold.sandbox.cpython.pool import Guest

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
