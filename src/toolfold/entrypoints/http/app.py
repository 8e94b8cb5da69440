"""MCP at `/mcp` and the state of things at `/health`, over HTTP."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolfold import __version__
from toolfold.app import App
from toolfold.catalog.catalog import ServerStatus
from toolfold.entrypoints.http.guard import Doorkeeper
from toolfold.entrypoints.http.stack import mcp_app, serve_asgi
from toolfold.entrypoints.mcp.server import make_server


async def serve_http(app: App, *, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve `app` until cancelled, then end open requests; call `started` with the address of MCP.

    Raises:
        ConfigError: The address cannot be used.
    """
    app.discovery.warm()
    await serve_asgi(http_app(app), host=host, port=port, started=started)


def http_app(app: App) -> Starlette:
    """Return everything that is served over HTTP for one app."""

    async def health(_request: Request) -> Response:
        servers = [_state(status) for status in app.catalog.statuses()]
        return JSONResponse({"status": "ok", "version": __version__, "servers": servers})

    settings = app.config.settings
    return mcp_app(
        make_server(app),
        doorkeeper=Doorkeeper(
            allowed_hosts=frozenset(map(str.lower, settings.allowed_hosts)),
            allowed_origins=frozenset(map(str.lower, settings.allowed_origins)),
        ),
        routes=[Route("/health", health)],
    )


def _state(status: ServerStatus) -> dict[str, object]:
    """Say how a server is: `known` if its tools are, `unknown` until something needs them."""
    state = "failed" if status.fault else "unknown" if status.tools is None else "known"
    return {"name": status.name, "state": state, "tools": status.tools, "fault": status.fault}
