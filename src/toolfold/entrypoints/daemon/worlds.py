"""The apps of a daemon: clients with equal configurations share one."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from toolfold.app import App, Shared, running_app
from toolfold.config.config import Config
from toolfold.errors import StoreError

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _World:
    config: Config
    app: App | None = None
    clients: int = 0
    settled: anyio.Event = field(default_factory=anyio.Event)
    changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_private(self) -> bool:
        """Whether one of its servers is for one client alone."""
        return any(server.scope == "session" for server in self.config.servers)

    def count(self, change: int) -> None:
        self.clients += change
        self.changed.set()
        self.changed = anyio.Event()


class Worlds:
    """Opens an app when a client comes, and closes it a while after the last one left."""

    def __init__(self, shared: Shared, *, linger_s: float) -> None:
        self._shared = shared
        self._linger_s = linger_s
        self._worlds: list[_World] = []
        self._owners: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own all apps for the length of this context."""
        async with anyio.create_task_group() as owners:
            self._owners = owners
            yield
            owners.cancel_scope.cancel()

    @asynccontextmanager
    async def enter(self, config: Config) -> AsyncIterator[App]:
        """Be a client of the app for `config`.

        Raises:
            StoreError: It could not be started.
        """
        world = self._find(config) or self._begin(config)
        world.count(+1)
        try:
            await world.settled.wait()
            if world.app is None:
                raise StoreError("The app for this configuration did not start; see the log.")
            yield world.app
        finally:
            world.count(-1)

    def _find(self, config: Config) -> _World | None:
        for world in self._worlds:
            if world.config == config and not world.is_private:
                return world
        return None

    def _begin(self, config: Config) -> _World:
        assert self._owners is not None  # noqa: S101
        world = _World(config)
        self._worlds.append(world)
        self._owners.start_soon(self._own, world)
        return world

    async def _own(self, world: _World) -> None:
        try:
            async with running_app(world.config, self._shared) as app:
                world.app = app
                world.settled.set()
                app.discovery.warm()
                await self._until_unwanted(world)
                self._worlds.remove(world)
        except Exception:  # noqa: BLE001  # the loop of a background task
            _log.exception("An app ended with an error.")
            if world in self._worlds:
                self._worlds.remove(world)
        finally:
            world.app = None
            world.settled.set()

    async def _until_unwanted(self, world: _World) -> None:
        linger_s = 0 if world.is_private else self._linger_s
        while True:
            if world.clients == 0:
                with anyio.move_on_after(linger_s):
                    await world.changed.wait()
                if world.clients == 0:
                    return
            else:
                await world.changed.wait()
