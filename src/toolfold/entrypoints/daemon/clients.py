"""The clients of a daemon."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from toolfold.entrypoints.mcp.lines import InFlight

Wait = Callable[[], Awaitable[object]]


@dataclass(slots=True, eq=False)
class ConnectedClient:
    """One that is being served."""

    id: str
    pid: int
    project: str
    version: str = ""
    since: float = field(default_factory=time.time)
    in_flight: InFlight = field(default_factory=InFlight)

    def status(self) -> dict[str, Any]:
        """Say who it is and what it waits for."""
        return {
            "id": self.id,
            "pid": self.pid,
            "project": self.project,
            "version": self.version,
            "since": self.since,
            "in_flight": len(self.in_flight),
        }


class ConnectedClients:
    """Counts connections, and knows those that became clients."""

    def __init__(self) -> None:
        self.connections = 0
        """All that are open, greeted or not."""
        self.is_draining = anyio.Event()
        self._clients: set[ConnectedClient] = set()
        self._changed = anyio.Event()

    @property
    def in_flight(self) -> int:
        """How many requests are not answered."""
        return sum(len(client.in_flight) for client in self._clients)

    def status(self) -> list[dict[str, Any]]:
        """Describe all, the eldest first."""
        return [client.status() for client in sorted(self._clients, key=lambda c: c.since)]

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Count a connection for the length of this context."""
        self._count(+1)
        try:
            yield
        finally:
            self._count(-1)

    @asynccontextmanager
    async def served(
        self, client: ConnectedClient, *, outdated: Wait | None = None
    ) -> AsyncIterator[None]:
        """Serve a client in this context.

        When we drain, or `outdated` returns, it is let go once it waits for nothing; its relay
        connects again.
        """

        async def let_go(wait: Wait) -> None:
            await wait()
            await client.in_flight.none()
            tasks.cancel_scope.cancel()

        self._clients.add(client)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(let_go, self.is_draining.wait)
                if outdated is not None:
                    tasks.start_soon(let_go, outdated)
                yield
                tasks.cancel_scope.cancel()
        finally:
            self._clients.discard(client)

    async def all_gone(self) -> None:
        """Wait until no connection is open."""
        while self.connections:
            await self._changed.wait()

    async def none_for(self, seconds: float) -> None:
        """Wait until no connection has been open for so long."""
        while True:
            await self.all_gone()
            with anyio.move_on_after(seconds):
                await self._changed.wait()
                continue
            if not self.connections:
                return

    def _count(self, change: int) -> None:
        self.connections += change
        self._changed.set()
        self._changed = anyio.Event()
