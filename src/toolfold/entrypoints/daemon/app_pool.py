"""The apps of a daemon: clients with equal configurations share one."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup, TaskStatus

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


@dataclass(slots=True, eq=False)
class _UsedApp:
    """An app that a client has, until it has another and no request is left in this one."""

    app: App
    requests: int = 0
    is_superseded: bool = False
    unused: anyio.Event = field(default_factory=anyio.Event)

    def supersede(self) -> None:
        self.is_superseded = True
        self.count(0)

    def count(self, change: int) -> None:
        self.requests += change
        if self.is_superseded and not self.requests:
            self.unused.set()


class CurrentApp:
    """The app of one client: another one from its next request on when its files changed."""

    def __init__(self, apps: "AppPool", used: _UsedApp) -> None:
        self._apps = apps
        self._used = used
        self.switched = anyio.Event()
        """Set with the next switch; another one is here then."""

    @contextmanager
    def using(self) -> Iterator[App]:
        """Have the app that is current now for the length of a request."""
        used = self._used
        used.count(+1)
        try:
            yield used.app
        finally:
            used.count(-1)

    async def switch(self, config: Config) -> None:
        """Have another app from the next request on; those under way keep what they have.

        Raises:
            StoreError: It could not be started.
        """
        used = await self._apps.hold(config)
        self.leave()
        self._used = used
        self.switched.set()
        self.switched = anyio.Event()

    def leave(self) -> None:
        """Need no app any more."""
        self._used.supersede()


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

    @asynccontextmanager
    async def follow(self, config: Config) -> AsyncIterator[CurrentApp]:
        """Be a client of the app for `config`, and of others that take its place.

        Raises:
            StoreError: It could not be started.
        """
        current = CurrentApp(self, await self.hold(config))
        try:
            yield current
        finally:
            current.leave()

    async def hold(self, config: Config) -> _UsedApp:
        """Return the app for `config`, which stays until it is superseded and not used."""
        assert self._owners is not None  # noqa: S101
        used: _UsedApp = await self._owners.start(self._hold, config)
        return used

    async def _hold(self, config: Config, *, task_status: TaskStatus[_UsedApp]) -> None:
        async with self.enter(config) as app:
            used = _UsedApp(app)
            task_status.started(used)
            await used.unused.wait()

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
                await self._runs_of(pooled.config)
                if pooled.clients == 0:
                    return
            else:
                await pooled.changed.wait()

    async def _runs_of(self, config: Config) -> None:
        """Wait for the runs that began with a configuration: they keep its servers."""
        configs = self._shared.run_configs
        for run in self._shared.background_runs.under_way:
            if configs.of(run.id) == config:
                await run.over.wait()
