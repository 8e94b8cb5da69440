"""Progress of a run, as its client hears of it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

_EVERY_S: Final = 0.1


class ProgressReporter:
    """Tells the client of calls as they begin, or of what the code says of its progress.

    A notification costs as much as a fast call. So they go out ten times a second at most, and the
    newest call stands for those before it.
    """

    def __init__(self, send: Callable[..., Awaitable[None]]) -> None:
        self._send = send
        self._latest: tuple[float, float | None, str] | None = None
        self._news = anyio.Event()
        self._tasks = anyio.create_task_group()

    async def __aenter__(self) -> "ProgressReporter":
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._report)
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._tasks.cancel_scope.cancel()
        # Not told of the error, which it would wrap in a group.
        await self._tasks.__aexit__(None, None, None)
        await self._send_latest()

    def note(self, done: float, total: float | None, note: str) -> None:
        """Remember the newest."""
        self._latest = (done, total, note)
        self._news.set()

    async def _report(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await self._send_latest()
            await anyio.sleep(_EVERY_S)

    async def _send_latest(self) -> None:
        if self._latest is not None:
            latest, self._latest = self._latest, None
            await self._send(*latest)
