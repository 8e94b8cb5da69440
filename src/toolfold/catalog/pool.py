"""The upstreams of a process: equal ones are shared by all who ask for them."""

import hashlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from toolfold.catalog.transport import ServerStart
from toolfold.catalog.upstream import Upstream
from toolfold.config.servers import ServerConfig

MakeUpstream = Callable[[ServerConfig, ServerStart, str], Upstream]
"""Makes one from its configuration, where it starts, and a short name that no other has."""


@dataclass(slots=True)
class _Held:
    upstream: Upstream
    owner: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    leases: int = 0


class UpstreamPool:
    """Starts what is wanted, and ends what nobody wants any more."""

    def __init__(self, make: MakeUpstream) -> None:
        self._make = make
        self._held: dict[tuple[object, ...], _Held] = {}
        self._owners: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own every connection for the length of this context."""
        async with anyio.create_task_group() as owners:
            self._owners = owners
            yield
            owners.cancel_scope.cancel()

    @property
    def upstreams(self) -> list[Upstream]:
        """Those that somebody wants."""
        return [held.upstream for held in self._held.values()]

    @contextmanager
    def lease(
        self, server: ServerConfig, start: ServerStart, *, on_listing: Callable[[], None]
    ) -> Iterator[Upstream]:
        """Yield the upstream of `server`, shared unless its scope is one client's session."""
        key = _identity(server, start)
        if server.scope == "session":
            key = next((key, number) for number in count() if (key, number) not in self._held)
        held = self._held.get(key) or self._begin(key, server, start)
        held.leases += 1
        held.upstream.listeners.append(on_listing)
        try:
            yield held.upstream
        finally:
            held.upstream.listeners.remove(on_listing)
            held.leases -= 1
            if not held.leases:
                del self._held[key]
                held.owner.cancel()

    def _begin(self, key: tuple[object, ...], server: ServerConfig, start: ServerStart) -> _Held:
        assert self._owners is not None  # noqa: S101
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:8]
        held = self._held[key] = _Held(self._make(server, start, digest))
        self._owners.start_soon(_own, held)
        return held


async def _own(held: _Held) -> None:
    with held.owner:
        await held.upstream.serve()


def _identity(server: ServerConfig, start: ServerStart) -> tuple[object, ...]:
    """Return what two clients must have in common to share a server.

    Of the PATH only that it leads to the same command: it differs from window to window.
    """
    anonymous = replace(server, source=Path(), privacy="", receives=None, untrusted=False)
    if not server.is_program:
        return (anonymous,)
    command = shutil.which(server.command, path=start.path)
    return anonymous, server.cwd or start.directory, start.home, command
