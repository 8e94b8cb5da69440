"""The REST API of an app in this process, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2

from toolfold.app import App
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.entrypoints.http.app import http_app, serve_http
from toolfold.entrypoints.http.stack import serve_asgi

LOCAL = "http://localhost"


@asynccontextmanager
async def door(app: App, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of everything that is served over HTTP, without a socket between."""
    served = http_app(app, **options)
    transport = httpx2.ASGITransport(app=served)
    async with (
        served.router.lifespan_context(served),
        httpx2.AsyncClient(transport=transport, base_url=LOCAL, timeout=60) as client,
    ):
        yield client


@asynccontextmanager
async def listening(
    app: App, host: str = "127.0.0.1", browsers: BrowserSessions | None = None, **options: Any
) -> AsyncIterator[str]:
    """Serve on a free port, and give the address; `browsers` may see the dashboard."""
    urls: list[str] = []
    is_started = anyio.Event()

    def started(url: str) -> None:
        urls.append(url.removesuffix("/mcp"))
        is_started.set()

    async with anyio.create_task_group() as tasks:
        if browsers is None:
            serve = partial(serve_http, app)
        else:
            serve = partial(serve_asgi, http_app(app, browsers=browsers, **options))
        tasks.start_soon(partial(serve, host=host, port=0, started=started))
        with anyio.fail_after(60):
            await is_started.wait()
        yield urls[0]
        tasks.cancel_scope.cancel()
