"""The apps of a daemon: clients with equal configurations share one."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from toolfold.app import App, SharedResources, running_app
from toolfold.config.config import Config
from toolfold.errors import StoreError

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _PooledApp:
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


class AppPool:
    """Opens an app when a client comes, and closes it a while after the last one left."""

    def __init__(self, shared: SharedResources, *, linger_s: float) -> None:
        self._shared = shared
        self._linger_s = linger_s
        self._pooled: list[_PooledApp] = []
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
        pooled = self._find(config) or self._begin(config)
        pooled.count(+1)
        try:
            await pooled.settled.wait()
            if pooled.app is None:
                raise StoreError("The app for this configuration did not start; see the log.")
            yield pooled.app
        finally:
            pooled.count(-1)

    def _find(self, config: Config) -> _PooledApp | None:
        for pooled in self._pooled:
            if pooled.config == config and not pooled.is_private:
                return pooled
        return None

    def _begin(self, config: Config) -> _PooledApp:
        assert self._owners is not None  # noqa: S101
        pooled = _PooledApp(config)
        self._pooled.append(pooled)
        self._owners.start_soon(self._own, pooled)
        return pooled

    async def _own(self, pooled: _PooledApp) -> None:
        try:
            async with running_app(pooled.config, self._shared) as app:
                pooled.app = app
                pooled.settled.set()
                app.discovery.warm()
                await self._until_unwanted(pooled)
                self._pooled.remove(pooled)
        except Exception:  # noqa: BLE001  # the loop of a background task
            _log.exception("An app ended with an error.")
            if pooled in self._pooled:
                self._pooled.remove(pooled)
        finally:
            pooled.app = None
            pooled.settled.set()

    async def _until_unwanted(self, pooled: _PooledApp) -> None:
        linger_s = 0 if pooled.is_private else self._linger_s
        while True:
            if pooled.clients == 0:
                with anyio.move_on_after(linger_s):
                    await pooled.changed.wait()
                if pooled.clients == 0:
                    return
            else:
                await pooled.changed.wait()
