"""An app for each namespace that keys belong to, opened when its first request comes."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from starlette.types import ASGIApp, Receive, Scope, Send

from toolfold.app import AppSource
from toolfold.config.config import Config
from toolfold.entrypoints.daemon.app_pool import AppPool
from toolfold.entrypoints.http.callers import CALLER, Caller, Refused
from toolfold.entrypoints.http.guard import refused
from toolfold.entrypoints.http.stack import mcp_endpoint
from toolfold.entrypoints.mcp.server import make_server
from toolfold.errors import StoreError

_log = logging.getLogger(__name__)

HTTP_CLIENT: Final = "http"
"""The name of clients without a key in the journal: nothing says which requests are of one."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """What serves one namespace: nothing of another can be reached through it."""

    source: AppSource
    mcp: ASGIApp


class Tenants:
    """Finds what serves a caller. Servers are shared by all; notes and MCP sessions are not."""

    def __init__(self, source: AppSource) -> None:
        self._source = source
        with source.using() as app:
            self._apps = AppPool(app.shared, linger_s=0)
        self._user: Tenant | None = None
        self._tenants: dict[str, Tenant] = {}
        self._opening: dict[str, anyio.Event] = {}
        self._owners: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own all of them for the length of this context."""
        endpoint, mcp_running = mcp_endpoint(make_server(self._source, client=_client))
        async with self._apps.running(), mcp_running(), anyio.create_task_group() as owners:
            self._owners = owners
            self._user = Tenant(self._source, endpoint)
            yield
            owners.cancel_scope.cancel()

    async def of(self, caller: Caller) -> Tenant:
        """Return what serves a caller.

        Raises:
            StoreError: It could not be started.
        """
        namespace = caller.namespace or ""
        with self._source.using() as app:
            is_user = not namespace or namespace == app.config.namespace
        if self._user is not None and is_user:
            return self._user
        if namespace not in self._tenants:
            await self._open(namespace)
        if namespace not in self._tenants:
            raise StoreError("What serves this key's namespace did not start; see the log.")
        return self._tenants[namespace]

    async def mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request to `/mcp`."""
        try:
            tenant = await self.of(scope[CALLER])
        except StoreError as error:
            await refused(Refused(503, error.code, str(error)), scope)(scope, receive, send)
            return
        await tenant.mcp(scope, receive, send)

    async def _open(self, namespace: str) -> None:
        assert self._owners is not None  # noqa: S101
        if namespace not in self._opening:
            self._opening[namespace] = anyio.Event()
            self._owners.start_soon(self._own, namespace)
        await self._opening[namespace].wait()

    def _config(self, namespace: str) -> Config:
        with self._source.using() as app:
            return in_namespace(app.config, namespace)

    async def _own(self, namespace: str) -> None:
        try:
            switched = self._source.switched
            async with self._apps.follow(self._config(namespace)) as current:
                endpoint, mcp_running = mcp_endpoint(make_server(current, client=_client))
                async with mcp_running():
                    self._tenants[namespace] = Tenant(current, endpoint)
                    self._opening[namespace].set()
                    while True:
                        await switched.wait()
                        switched = self._source.switched
                        await current.switch(self._config(namespace))
        except Exception:  # noqa: BLE001  # of one namespace, which must not end the others
            _log.exception("What serves the namespace %r ended.", namespace)
        finally:
            self._tenants.pop(namespace, None)
            self._opening.pop(namespace).set()


def _client(context: Any) -> str:
    """Return under which name the journal knows who makes a call: the same as over REST."""
    caller: Caller = context.request.scope[CALLER]
    return caller.client or HTTP_CLIENT


def in_namespace(config: Config, namespace: str) -> Config:
    """Return a configuration whose notes, files and skills belong to another namespace."""
    memory = replace(config.settings.memory, namespace=namespace)
    settings = replace(config.settings, memory=memory)
    return replace(config, settings=settings, tenant=namespace)
