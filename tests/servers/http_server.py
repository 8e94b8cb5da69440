"""The tools of `null.py` over HTTP: `python http_server.py PORT [MODE [ARGUMENT]]`.

`PORT` 0 takes a free one. The line `listening on http://127.0.0.1:PORT/mcp` says it is ready.
Modes: `plain`; `busy N` answers the first N calls with 429 and `Retry-After: 1`; `unavailable N`
the same with 503 and no hint; `auth VALUE` wants that `Authorization` header; `sse` is the legacy
transport; `json` answers without a stream; `old S` speaks 2025-11-25 only, always answers by a
stream, and lets `put` wait for S seconds.
"""

import json
import socket
import sys

import anyio
import uvicorn
from mcp.server.sse import SseServerTransport
from sdk import make_server
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Refusing:
    """Answers the first `times` POSTs of tools/call with a status instead of passing them on."""

    def __init__(self, app: ASGIApp, *, times: int, status: int, headers: dict[str, str]) -> None:
        self._app = app
        self._left = times
        self._status = status
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not self._left:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if json.loads(body).get("method") == "tools/call":
            self._left -= 1
            refusal = Response("busy", status_code=self._status, headers=self._headers)
            await refusal(scope, receive, send)
            return
        await self._app(scope, replaying(body, receive), send)


class Old:
    """Knows no `server/discover`, and passes calls of `put` on after a while."""

    def __init__(self, app: ASGIApp, *, delay_s: float) -> None:
        self._app = app
        self._delay_s = delay_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        request = json.loads(body)
        if request.get("method") == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            answer = {"jsonrpc": "2.0", "id": request["id"], "error": error}
            await JSONResponse(answer, status_code=404)(scope, receive, send)
            return
        if request.get("params", {}).get("name") == "put":
            await anyio.sleep(self._delay_s)
        await self._app(scope, replaying(body, receive), send)


class Authorized:
    """Wants one exact `Authorization` header."""

    def __init__(self, app: ASGIApp, *, value: str) -> None:
        self._app = app
        self._value = value

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and Request(scope).headers.get("authorization") != self._value:
            app = Response("unauthorized", status_code=401)
        await app(scope, receive, send)


def replaying(body: bytes, receive: Receive) -> Receive:
    """Give the body that was already read, then whatever the client sends next."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


def sse_app() -> Starlette:
    """Build the legacy transport: a GET stream at /mcp, messages posted beside it."""
    transport = SseServerTransport("/messages/")
    server = make_server()

    class Connect:
        """A class, because Starlette takes a plain function for a request handler."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async with transport.connect_sse(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())

    return Starlette(
        routes=[
            Route("/mcp", endpoint=Connect(), methods=["GET"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )


class Squeezing:
    """Answers in a compressed form, whatever the client asks for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = GZipMiddleware(app, minimum_size=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [each for each in scope["headers"] if each[0] != b"accept-encoding"]
            scope = {**scope, "headers": [*headers, (b"accept-encoding", b"gzip")]}
        await self._app(scope, receive, send)


def make_app(mode: str, argument: str) -> ASGIApp:
    if mode == "sse":
        return sse_app()
    app: ASGIApp = make_server().streamable_http_app(json_response=mode == "json")
    if mode == "old":
        return Old(app, delay_s=float(argument or 0))
    if mode == "busy":
        return Refusing(app, times=int(argument), status=429, headers={"Retry-After": "1"})
    if mode == "unavailable":
        return Refusing(app, times=int(argument), status=503, headers={})
    if mode == "squeezing":
        return Squeezing(make_server().streamable_http_app(json_response=True))
    if mode == "squeezable":
        return GZipMiddleware(make_server().streamable_http_app(json_response=True), minimum_size=1)
    return Authorized(app, value=argument) if mode == "auth" else app


def main(port: str, mode: str = "plain", argument: str = "") -> None:
    # Listening before the line is printed, so that a client that reads it can connect.
    listener = socket.create_server(("127.0.0.1", int(port)))
    config = uvicorn.Config(make_app(mode, argument), log_level="error")
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
