"""How often an upstream is called: no more than it, or the user, asks for."""

import time
from collections.abc import Callable

import anyio


class CallPace:
    """Has calls wait for their turn."""

    def __init__(self, name: str, rate_per_s: float | None) -> None:
        self._name = name
        self._rate_per_s = rate_per_s
        self._next_slot = 0.0

    async def wait(self, on_wait: Callable[[str, float], None], *, busy_until: float = 0.0) -> None:
        """Wait as long as the upstream, or the configured rate, asks for."""
        if (busy_s := busy_until - time.monotonic()) > 0:
            on_wait(f"{self._name} asked to wait", busy_s)
            await anyio.sleep(busy_s)
        if self._rate_per_s:
            now = time.monotonic()
            slot = max(self._next_slot, now)
            self._next_slot = slot + 1 / self._rate_per_s
            if slot > now:
                on_wait(f"{self._name} is limited to {self._rate_per_s:g}/s", slot - now)
                await anyio.sleep(slot - now)
