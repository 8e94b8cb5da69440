"""Wait on loopback for the browser to come back from a login."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from mcp.shared.auth import AuthorizationCodeResult

from toolfold.config.faults import shown
from toolfold.errors import LoginFailed

_MAX_HEAD_BYTES: Final = 16 * 1024
_REQUEST_TIMEOUT_S: Final = 10.0
_PATH: Final = "/callback"
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>toolfold</title>'
    "<body><p>{text}</p></body></html>"
)


class Callback:
    """What the browser brings back. Only an answer with the expected `state` counts."""

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri = redirect_uri
        self._state: str | None = None
        self._answer: dict[str, str] | None = None
        self._answered = anyio.Event()

    def expect(self, authorization_url: str) -> None:
        """Take the answer to this request, and to no other."""
        self._state = _query(authorization_url).get("state")

    async def wait(self) -> AuthorizationCodeResult:
        """Return what the authorization server granted.

        Raises:
            LoginFailed: It refused.
        """
        await self._answered.wait()
        answer = self._answer or {}
        if error := answer.get("error"):
            words = " ".join(filter(None, [error, answer.get("error_description")]))
            raise LoginFailed(f"The login was refused: {shown(words)}.")
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss")
        )

    async def handle(self, stream: SocketStream) -> None:
        """Answer one request of a browser."""
        async with stream:
            with anyio.move_on_after(_REQUEST_TIMEOUT_S):
                try:
                    status, text = self._consider(await _target(stream))
                    await stream.send(_response(status, text))
                except (anyio.EndOfStream, anyio.BrokenResourceError, ValueError):
                    pass  # not a browser, or one that did not stay for the page
        if self._answer is not None:
            self._answered.set()

    def _consider(self, target: str) -> tuple[str, str]:
        """Take what a request brings, if it is what we wait for; return what to answer."""
        if urlsplit(target).path != _PATH:
            return "404 Not Found", "There is nothing here."
        answer = _query(target)
        given = answer.get("state", "")
        if self._state is None or not secrets.compare_digest(given.encode(), self._state.encode()):
            return "400 Bad Request", "This does not belong to the login that toolfold waits for."
        if self._answer is None:
            self._answer = answer
        if "error" in answer:
            return "200 OK", "The login was refused. The terminal says more."
        return "200 OK", "toolfold has what it needs. You can close this page."


@asynccontextmanager
async def listening(port: int | None) -> AsyncIterator[Callback]:
    """Listen for a browser on loopback, on a free port unless one is given.

    Raises:
        LoginFailed: The port is taken.
    """
    try:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port or 0)
    except OSError as error:
        raise LoginFailed(
            f"The browser cannot come back to port {port}: {error.strerror}. "
            "Free it, or change `callbackPort` in the server's entry."
        ) from error
    # A port chosen beforehand was registered beforehand, as other clients write it: by name.
    host = "127.0.0.1" if port is None else "localhost"
    taken = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
    callback = Callback(f"http://{host}:{taken}{_PATH}")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, callback.handle)
        yield callback
        tasks.cancel_scope.cancel()


async def _target(stream: SocketStream) -> str:
    """Read the head of a GET request; return what it asks for.

    Raises:
        ValueError: It is something else.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > _MAX_HEAD_BYTES:
            raise ValueError("the head of the request is too long")
        head += await stream.receive()
    method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if method != "GET":
        raise ValueError("not a GET")
    return target


def _response(status: str, text: str) -> bytes:
    page = _PAGE.format(text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\n"
        "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + page


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
