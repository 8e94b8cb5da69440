"""What ends a request before its answer: its client leaving, or we."""

import json
from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolfold.entrypoints.http.guard import refusal, replaying

_GRACE_S: Final = 0.5
_END: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


class CancelOnDisconnect:
    """Cancels a request of a session whose client closed the connection.

    A session outlives connections, and the SDK leaves the request running. Streams cannot be
    resumed here, so its answer would reach nobody. (Without a session the SDK cancels it itself.)
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request; if the client leaves first, say so as it should have."""
        if scope["method"] != "POST" or "mcp-session-id" not in Headers(scope=scope):
            await self._app(scope, receive, send)
            return
        body = (await receive())["body"]
        exchange = _Exchange(replaying(body, receive), send)
        await self._app(scope, exchange.receive, exchange.send)
        if exchange.was_left and (notification := _cancellation(body)) is not None:
            await self._app(scope, replaying(notification, receive), _to_nobody)


class OpenRequests:
    """The requests that are being served, and the way to end them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._scopes: set[anyio.CancelScope] = set()
        self._asked: set[anyio.CancelScope] = set()
        self._one_less = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. One that is ended still gets an answer, or the end of its stream."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send)
        with anyio.CancelScope() as ending:
            self._scopes.add(ending)
            if scope["method"] != "GET":
                self._asked.add(ending)
            try:
                await self._app(scope, exchange.receive, exchange.send)
            finally:
                self._scopes.discard(ending)
                self._asked.discard(ending)
                self._one_less.set()
        if ending.cancelled_caught:
            await _close(exchange, scope)

    async def finish(self) -> None:
        """Wait until nothing that was asked for is under way; streams to listen to do not count."""
        while self._asked:
            self._one_less = anyio.Event()
            await self._one_less.wait()

    async def end(self) -> None:
        """Let those finish that are about to, and end the others."""
        with anyio.move_on_after(_GRACE_S):
            while self._scopes:
                self._one_less = anyio.Event()
                await self._one_less.wait()
        for ending in tuple(self._scopes):
            ending.cancel()


class _Exchange:
    """One request and its answer, watched as they go by."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._is_left = False
        self.is_begun = False
        self.is_complete = False

    @property
    def was_left(self) -> bool:
        """Whether the client left before it had its answer."""
        return self._is_left and not self.is_complete

    async def receive(self) -> Message:
        message = await self._receive()
        self._is_left |= message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        self.is_begun = True
        await self._send(message)
        is_body = message["type"] == "http.response.body"
        self.is_complete |= is_body and not message.get("more_body", False)


async def _close(exchange: _Exchange, scope: Scope) -> None:
    if not exchange.is_begun:
        await refusal(503, scope)(scope, exchange.receive, exchange.send)
    elif not exchange.is_complete:
        await exchange.send(_END)


def _cancellation(body: bytes) -> bytes | None:
    """Return the notification that cancels the request in `body`, if it is one."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or not {"id", "method"} <= request.keys():
        return None
    params = {"requestId": request["id"], "reason": "The client closed the connection."}
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(notification).encode()


async def _to_nobody(_message: Message) -> None:
    """Take an answer that has no reader."""
