"""Everything that is served over HTTP: MCP at `/mcp`, and the REST API."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolfold.app import App
from toolfold.config.config import environment
from toolfold.entrypoints.dashboard.routes import dashboard_routes
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.entrypoints.http.callers import CALLER, Caller, Callers
from toolfold.entrypoints.http.guard import AccessControl
from toolfold.entrypoints.http.keys import Keys, LocalToken
from toolfold.entrypoints.http.stack import MCP_METHODS, find_address, guarded_app, serve_at
from toolfold.entrypoints.http.tenants import Tenants
from toolfold.entrypoints.rest.metrics import Metrics
from toolfold.entrypoints.rest.operations import RestRequest
from toolfold.entrypoints.rest.routes import rest_operations, rest_routes
from toolfold.errors import ConfigError


async def serve_http(app: App, *, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve `app` until cancelled, then end open requests; call `started` with the address of MCP.

    Beyond loopback every request must show a key, so there must be one.

    Raises:
        ConfigError: The address cannot be used, or there is no key and must be one.
    """
    address = await find_address(host, port)
    must_have_key = not address.is_loopback or app.config.settings.require_keys
    if must_have_key and not Keys.of(app.config.directories).valid():
        why = "`require_keys` is set" if address.is_loopback else f"{host!r} is not loopback"
        raise ConfigError(
            f"{why}, so clients need an API key, and there is none. Create one with "
            f"`toolfold keys create NAME{_data_option()}`, or listen on 127.0.0.1."
        )
    app.discovery.warm()
    served = http_app(app, must_have_key=must_have_key, takes_addresses=not address.is_loopback)
    await serve_at(address, served, started=started)


def _data_option() -> str:
    """Return the option with which `toolfold keys` writes where this server reads."""
    directory = environment().get("TOOLFOLD_DATA_DIR")
    return f" --data-dir {directory}" if directory else ""


def http_app(
    app: App,
    *,
    must_have_key: bool = False,
    takes_addresses: bool = False,
    browsers: BrowserSessions | None = None,
) -> Starlette:
    """Return everything that is served over HTTP for one app; `browsers` may see its pages."""
    metrics = Metrics()
    operations = rest_operations(metrics)
    settings, directories = app.config.settings, app.config.directories
    tenants, keys = Tenants(app), Keys.of(directories)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with tenants.running():
            yield

    async def app_of(key_id: str) -> App:
        tenant = await tenants.of(Caller(key_id, keys.get(key_id).namespace))
        return tenant.app

    async def find_visit(scope: Scope) -> RestRequest:
        caller: Caller = scope[CALLER]
        tenant = await tenants.of(caller)
        return RestRequest(
            app=tenant.app,
            key=caller.key,
            is_known=caller.is_known,
            has_token=caller.has_token,
            app_of=app_of,
        )

    return guarded_app(
        [
            Route("/mcp", _Mcp(tenants), methods=MCP_METHODS),
            *rest_routes(operations, metrics, find_visit, time_s=settings.request_time_s),
            *dashboard_routes(operations, find_visit, browsers or BrowserSessions()),
        ],
        lifespan=lifespan,
        access_control=AccessControl(
            allowed_hosts=frozenset(map(str.lower, settings.allowed_hosts)),
            allowed_origins=frozenset(map(str.lower, settings.allowed_origins)),
            takes_addresses=takes_addresses,
        ),
        callers=Callers(keys, LocalToken(directories), must_have_key=must_have_key),
    )


class _Mcp:
    """An object, which a route takes for an ASGI app; a method it would take for a handler."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._tenants.mcp(scope, receive, send)
