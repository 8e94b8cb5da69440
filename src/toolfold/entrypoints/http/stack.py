"""How any MCP server is served over HTTP: guarded, bounded, and ended in order."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from errno import EADDRINUSE
from ipaddress import ip_address
from typing import Any, Final

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolfold.entrypoints.http.callers import Callers
from toolfold.entrypoints.http.cancellation import CancelOnDisconnect, OpenRequests
from toolfold.entrypoints.http.connection import HttpConnection
from toolfold.entrypoints.http.guard import (
    MAX_HEADER_BYTES,
    AccessControl,
    HttpGuard,
    WordedErrors,
    refusal,
)
from toolfold.errors import ConfigError

MCP_METHODS: Final = ["GET", "POST", "DELETE"]

_BACKLOG: Final = 2_048
_MAX_SESSIONS: Final = 1_000
_SESSION_IDLE_S: Final = 15 * 60.0
_MAX_CONNECTIONS: Final = 2_000
_KEEP_ALIVE_S: Final = 30


def mcp_app(
    server: Server[Any], *, access_control: AccessControl, routes: Sequence[BaseRoute] = ()
) -> Starlette:
    """Return one MCP server at `/mcp`, guarded, with other routes beside it."""
    endpoint, running = mcp_endpoint(server)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with running():
            yield

    mcp = Route("/mcp", endpoint, methods=MCP_METHODS)
    return guarded_app([mcp, *routes], lifespan=lifespan, access_control=access_control)


def mcp_endpoint(
    server: Server[Any],
) -> tuple[ASGIApp, Callable[[], AbstractAsyncContextManager[None]]]:
    """Return what answers at `/mcp`, and the context in which it does.

    Clients of 2025-11-25 get sessions, because only a session lets us ask them something
    (elicitation) and lets them cancel. Sessions are bounded, and idle ones end.
    """
    # The guard has checked hosts and origins when the SDK, which would do it too, gets to see them.
    sessions = StreamableHTTPSessionManager(
        server, max_sessions=_MAX_SESSIONS, session_idle_timeout=_SESSION_IDLE_S
    )
    return WordedErrors(CancelOnDisconnect(sessions.asgi_app)), sessions.run


def guarded_app(
    routes: Sequence[BaseRoute],
    *,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]],
    access_control: AccessControl,
    callers: Callers | None = None,
) -> Starlette:
    """Return these routes behind a guard. What fails is answered with a sentence."""

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return refusal(error.status_code, request.scope, error.headers)
        return refusal(500, request.scope)

    return Starlette(
        routes=routes,
        middleware=_middleware(access_control, callers),
        exception_handlers={HTTPException: refuse, Exception: refuse},
        lifespan=lifespan,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen."""

    host: str
    """As the user wrote it."""

    family: int
    place: tuple[str, int]

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ip_address(self.place[0]).is_loopback


async def find_address(host: str, port: int) -> Address:
    """Return what a host and a port stand for.

    Raises:
        ConfigError: The host is not known.
    """
    try:
        [(family, _, _, _, place), *_] = await anyio.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise ConfigError(f"The host {host!r} is unknown: {error.strerror}.") from error
    return Address(host=host, family=family, place=(str(place[0]), int(place[1])))


async def serve_asgi(app: ASGIApp, *, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve `app` on loopback until cancelled, then end open requests.

    `started` is called with the address of MCP once it is served.

    Raises:
        ConfigError: The address cannot be used.
    """
    address = await find_address(host, port)
    if not address.is_loopback:
        raise ConfigError(f"The host {host!r} is not loopback; use 127.0.0.1 or localhost.")
    await serve_at(address, app, started=started)


async def serve_at(
    address: Address,
    app: ASGIApp,
    *,
    started: Callable[[str], None],
    finish: Callable[[OpenRequests], Awaitable[None]] | None = None,
) -> None:
    """Do as `serve_asgi` does, at any address; or until `finish` returns, which may wait for some.

    Raises:
        ConfigError: The address cannot be used.
    """
    requests = OpenRequests(app)
    with _listen(address) as listener:
        server = _Uvicorn(requests, lambda: started(_url(listener)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_shielded, listener)
            try:
                await (anyio.sleep_forever() if finish is None else finish(requests))
            finally:
                server.should_exit = True
                with anyio.CancelScope(shield=True):
                    await requests.end()


class _Uvicorn(uvicorn.Server):
    """Leaves signals to us, and says when it listens."""

    def __init__(self, app: ASGIApp, on_started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=HttpConnection,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=_MAX_CONNECTIONS,
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=1,
            )
        )
        self._on_started = on_started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def serve_shielded(self, listener: socket.socket) -> None:
        """Serve until `should_exit`; cancelling would leave connections open."""
        with anyio.CancelScope(shield=True):
            await self.serve([listener])


def _listen(address: Address) -> socket.socket:
    host, port = address.place
    try:
        listener = socket.create_server((host, port), family=address.family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(_why_not(error, address.host, port)) from error
    # Connections inherit it. Without it the body of an answer waits 40 ms behind its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == EADDRINUSE:
        return (
            f"Port {port} of {host} is in use by another program. "
            "Choose another with --port, or a free one with --port 0."
        )
    return f"Cannot listen on port {port} of {host}: {error.strerror}. Choose another with --port."


def _url(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp"


def _middleware(access_control: AccessControl, callers: Callers | None) -> list[Middleware]:
    guard = Middleware(HttpGuard, access_control=access_control, callers=callers)
    if not access_control.allowed_origins:
        return [guard]
    # Pages of these origins can read our answers only if a browser is told so.
    cors = Middleware(
        CORSMiddleware,
        allow_origins=sorted(access_control.allowed_origins),
        allow_methods=["GET", "POST", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=["mcp-session-id"],
    )
    return [guard, cors]
