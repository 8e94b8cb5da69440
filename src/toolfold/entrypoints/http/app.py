"""Everything that is served over HTTP: MCP at `/mcp`, and the REST API."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolfold.app import App, AppSource
from toolfold.config.config import Config, environment
from toolfold.entrypoints.dashboard.routes import DashboardAccess, dashboard_routes
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.entrypoints.http.callers import CALLER, Caller, Callers
from toolfold.entrypoints.http.cancellation import OpenRequests
from toolfold.entrypoints.http.guard import AccessControl
from toolfold.entrypoints.http.keys import Keys, LocalToken
from toolfold.entrypoints.http.stack import (
    MCP_METHODS,
    Address,
    find_address,
    guarded_app,
    serve_at,
)
from toolfold.entrypoints.http.tenants import Tenants
from toolfold.entrypoints.rest.logins import ServerLogins
from toolfold.entrypoints.rest.metrics import REFUSED, Metrics
from toolfold.entrypoints.rest.observe import Savings
from toolfold.entrypoints.rest.operations import RestRequest
from toolfold.entrypoints.rest.owner import Examine
from toolfold.entrypoints.rest.routes import rest_operations, rest_routes
from toolfold.errors import ConfigError

_HELD: Final = "toolfold.held"


async def serve_http(
    source: AppSource,
    *,
    host: str,
    port: int,
    started: Callable[[str], None],
    ending: anyio.Event | None = None,
    examine: Examine | None = None,
) -> None:
    """Serve an app until cancelled, then end open requests; call `started` with the address of MCP.

    When `ending` is set, what is under way may finish within `drain_s`, runs in the background
    too, and then this returns. Beyond loopback every request must show a key, so there must be one.

    Raises:
        ConfigError: The address cannot be used, or there is no key and must be one.
    """
    ending = ending or anyio.Event()
    address = await find_address(host, port)
    with source.using() as app:
        config, background_runs = app.config, app.shared.background_runs
        app.discovery.warm()
    must_have_key = needs_key(address, config)
    if must_have_key and not await anyio.to_thread.run_sync(Keys.of(config).valid):
        why = "`require_keys` is set" if address.is_loopback else f"{host!r} is not loopback"
        raise ConfigError(
            f"{why}, so clients need an API key, and there is none. Create one with "
            f"`toolfold keys create NAME{_data_option()}`, or listen on 127.0.0.1."
        )
    served = http_app(
        source,
        must_have_key=must_have_key,
        takes_addresses=not address.is_loopback,
        is_ending=ending.is_set,
        examine=examine,
    )

    async def finish(requests: OpenRequests) -> None:
        await ending.wait()
        with anyio.move_on_after(config.settings.drain_s):
            await requests.finish()
            await background_runs.finish()

    await serve_at(address, served, started=started, finish=finish)


def needs_key(address: Address, config: Config) -> bool:
    """Whether every request to an address must show an API key."""
    return not address.is_loopback or config.settings.require_keys


def _data_option() -> str:
    """Return the option with which `toolfold keys` writes where this server reads."""
    directory = environment().get("TOOLFOLD_DATA_DIR")
    return f" --data-dir {directory}" if directory else ""


def http_app(
    source: AppSource,
    *,
    must_have_key: bool = False,
    takes_addresses: bool = False,
    browsers: BrowserSessions | None = None,
    is_ending: Callable[[], bool] = bool,
    examine: Examine | None = None,
) -> Starlette:
    """Return everything that is served over HTTP for one app; `browsers` may see its pages.

    `examine` is what looks at every part when the user asks for that.
    """
    metrics, logins, savings = Metrics(), ServerLogins(), Savings()
    operations = rest_operations(metrics, logins, savings, examine)
    with source.using() as app:
        config, telemetry = app.config, app.shared.telemetry
        observers = app.shared.journal.observers
    settings = config.settings
    tenants, keys = Tenants(source), Keys.of(config)
    callers = Callers(
        keys,
        LocalToken(config.directories),
        must_have_key=must_have_key,
        per_minute=settings.keys.per_minute,
    )
    visits = _Visits(tenants, keys, callers, is_ending)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with tenants.running(), logins.running(), savings.running():
            observers.append(metrics)
            yield
            observers.remove(metrics)

    access = DashboardAccess(
        sessions=browsers or BrowserSessions(),
        visit_as=visits.visit_as,
        recognize=visits.recognize,
    )
    served = guarded_app(
        [
            Route("/mcp", _Mcp(tenants), methods=MCP_METHODS),
            *rest_routes(operations, metrics, visits.find, time_s=settings.request_time_s),
            *dashboard_routes(operations, access),
        ],
        lifespan=lifespan,
        access_control=AccessControl(
            allowed_hosts=frozenset(map(str.lower, settings.allowed_hosts)),
            allowed_origins=frozenset(map(str.lower, settings.allowed_origins)),
            takes_addresses=takes_addresses,
        ),
        callers=callers,
    )
    served.add_middleware(_Holding)
    served.add_middleware(_Counted, metrics=metrics)
    if telemetry is not None:
        from toolfold.telemetry import JoinedTrace

        served.add_middleware(JoinedTrace)
    return served


class _Visits:
    """Finds what serves a request, and for whom."""

    def __init__(
        self, tenants: Tenants, keys: Keys, callers: Callers, is_ending: Callable[[], bool]
    ) -> None:
        self._tenants = tenants
        self._keys = keys
        self._callers = callers
        self._is_ending = is_ending

    async def find(self, scope: Scope) -> RestRequest:
        """Return what a request meets, for the caller that its scope names."""
        caller: Caller = scope[CALLER]
        held: ExitStack = scope[_HELD]
        tenant = await self._tenants.of(caller)

        async def app_of(key_id: str) -> App:
            key = await anyio.to_thread.run_sync(self._keys.get, key_id)
            tenant = await self._tenants.of(Caller(key_id, key.namespace))
            return held.enter_context(tenant.source.using())

        return RestRequest(
            app=held.enter_context(tenant.source.using()),
            key=caller.key,
            is_known=caller.is_known,
            has_token=caller.has_token,
            app_of=app_of,
            is_ending=self._is_ending,
            release=held.close,
        )

    async def visit_as(self, scope: Scope, key: str) -> RestRequest | None:
        """Return the same for a browser that has shown a key, or the token where that is empty."""
        if not key:
            return replace(await self.find(scope), has_token=True, is_known=True)
        caller = await self._callers.holder(key)
        return None if caller is None else await self.find({**scope, CALLER: caller})

    async def recognize(self, scope: Scope, secret: str) -> str | None:
        """Return the key that a secret is, empty for the token; None for neither."""
        caller = await self._callers.recognize_slowly(scope, secret)
        return None if caller is None else caller.key


class _Holding:
    """Lets a request have what it began with to its end, whatever files say meanwhile."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            scope[_HELD] = held
            await self._app(scope, receive, send)


class _Counted:
    """Counts requests to `/mcp` and refused ones; those to REST count at their routes."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 499

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            if CALLER not in scope or scope["path"] == "/mcp":
                route = "/mcp" if CALLER in scope else REFUSED
                taken_s = time.perf_counter() - began
                self._metrics.note(scope["method"], route, status, taken_s)


class _Mcp:
    """An object, which a route takes for an ASGI app; a method it would take for a handler."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._tenants.mcp(scope, receive, send)
