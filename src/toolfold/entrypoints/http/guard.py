"""Who may speak to us over HTTP, and how much. Every refusal is JSON with a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import anyio
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolfold.entrypoints.http.callers import CALLER, Caller, Callers, Refused

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
MAX_HEADER_BYTES: Final = 64 * 1024
"""Of the path and all headers; the parser counts them only while they are incomplete."""
BODY_TIME_S: Final = 30.0

REASONS: Final = {
    400: ("bad_request", "The body must be JSON with the header `Content-Type: application/json`."),
    403: (
        "forbidden",
        "Requests of {origin!r} are refused. The setting `allowed_origins` allows more.",
    ),
    404: (
        "not_found",
        "There is nothing at {path}; MCP is served at /mcp, and /openapi.json lists the rest.",
    ),
    405: (
        "method_not_allowed",
        "{path} does not take {method}. /openapi.json lists what it takes.",
    ),
    406: (
        "not_acceptable",
        "The request must accept both application/json and text/event-stream.",
    ),
    408: ("body_timeout", "The body of the request did not arrive within {time:g} s."),
    413: ("too_large", "The body of a request may have {size} bytes, and this one has more."),
    421: (
        "wrong_host",
        "Requests to {host!r} are refused. The setting `allowed_hosts` allows more.",
    ),
    431: ("too_large", "Path and headers may have {header_size} bytes, and these have more."),
    500: ("internal", "Internal error. The output of `toolfold serve` has the details."),
    503: ("ending", "toolfold is ending, so this request was not finished."),
}
"""What is said of each status, in this one place: a code that never changes, and a sentence."""


def refusal(status: int, scope: Scope, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the answer to a request that goes no further."""
    sent = Headers(scope=scope)
    code, sentence = REASONS.get(status, ("refused", "The request was refused."))
    message = sentence.format(
        path=scope["path"][:100],
        method=scope["method"],
        host=sent.get("host", "")[:100],
        origin=sent.get("origin", "")[:100],
        size=MAX_BODY_BYTES,
        header_size=MAX_HEADER_BYTES,
        time=BODY_TIME_S,
    )
    return refused(Refused(status, code, message), scope, headers)


def refused(
    reason: Refused, scope: Scope, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The same, for a reason that is known already; clients of MCP get a JSON-RPC error."""
    error: dict[str, object] = {"code": reason.code, "message": reason.message}
    answer: dict[str, object] = {"error": error}
    if scope["path"] == "/mcp":
        error["code"] = INTERNAL_ERROR if reason.status >= 500 else INVALID_REQUEST
        answer = {"jsonrpc": "2.0", "id": None, "error": error}
    if reason.status == 401:
        headers = {**(headers or {}), "www-authenticate": "Bearer"}
    if reason.retry_after_s is not None:
        headers = {**(headers or {}), "retry-after": str(reason.retry_after_s)}
    return JSONResponse(answer, status_code=reason.status, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """Knows whom to let in. A page of some web site must not reach us under a name it controls."""

    allowed_hosts: frozenset[str] = frozenset()
    """`name` or `name:port`, besides loopback names with the port that we listen on."""

    allowed_origins: frozenset[str] = frozenset()
    """Such as `https://example.org`, besides our own."""

    takes_addresses: bool = False
    """Whether we are reached by any address of this machine. No web site can have one as a name."""

    def objection(self, scope: Scope) -> int | None:
        """Return the status to refuse a request with, or None to let it in."""
        headers = Headers(scope=scope)
        port = (scope.get("server") or (None, None))[1]
        if not self._is_host(headers.getlist("host"), port):
            return 421
        return None if self._is_origin(headers.getlist("origin"), port) else 403

    def _is_host(self, hosts: list[str], port: int | None) -> bool:
        if len(hosts) != 1:
            return False
        host = hosts[0].lower()
        is_ours = _is_ours(host, port, any_address=self.takes_addresses)
        return is_ours or bool({host, _split(host)[0]} & self.allowed_hosts)

    def _is_origin(self, origins: list[str], port: int | None) -> bool:
        """Only browsers send an origin, and they always do where it matters."""
        if not origins:
            return True
        origin = origins[0].lower()
        scheme, _, host = origin.partition("://")
        ours = scheme == "http" and _is_ours(host, port, any_address=self.takes_addresses)
        return len(origins) == 1 and (ours or origin in self.allowed_origins)


class HttpGuard:
    """Lets a request in once it is allowed and its body is here, whole and not too large."""

    def __init__(
        self, app: ASGIApp, *, access_control: AccessControl, callers: Callers | None = None
    ) -> None:
        self._app = app
        self._access_control = access_control
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 431 if _has_long_head(scope) else self._access_control.objection(scope)
        if status is not None:
            await refusal(status, scope)(scope, receive, send)
            return
        caller = await self._callers.identify(scope) if self._callers else Caller()
        if isinstance(caller, Refused):
            await refused(caller, scope)(scope, receive, send)
            return
        scope[CALLER] = caller
        if _is_announced_too_large(Headers(scope=scope)):
            await refusal(413, scope, {"connection": "close"})(scope, receive, send)
            return
        body: bytes | int = 408
        with anyio.move_on_after(BODY_TIME_S):
            body = await _read_body(receive)
        if isinstance(body, int):
            await refusal(body, scope, {"connection": "close"})(scope, receive, send)
            return
        await self._app(scope, replaying(body, receive), send)


class WordedErrors:
    """Says what is wrong where an app inside answers with a bare status, as the SDK does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but failures that are not JSON."""
        bare: Message | None = None

        async def worded(message: Message) -> None:
            nonlocal bare
            if message["type"] == "http.response.start" and _is_bare(message):
                bare = message
            elif bare is None:
                await send(message)

        await self._app(scope, receive, worded)
        if bare is not None:
            kept = {name: value for name, value in _headers(bare).items() if name == "allow"}
            await refusal(bare["status"], scope, kept)(scope, receive, send)


def replaying(body: bytes, receive: Receive) -> Receive:
    """Give a body that was already read, then whatever comes next."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


def _has_long_head(scope: Scope) -> bool:
    target = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    return target + sum(len(k) + len(v) for k, v in scope["headers"]) > MAX_HEADER_BYTES


def _is_announced_too_large(headers: Headers) -> bool:
    """Whether a client waits to be told to send a body that is too large."""
    length = headers.get("content-length", "")
    is_waiting = headers.get("expect", "").lower() == "100-continue"
    return is_waiting and length.isdigit() and int(length) > MAX_BODY_BYTES


async def _read_body(receive: Receive) -> bytes | int:
    """Return the body, or the status to refuse it with.

    One that is too large is read to its end: a client that is still sending would not see why.
    """
    body = bytearray()
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return 400
        size += len(message.get("body", b""))
        if size <= MAX_BODY_BYTES:
            body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body) if size <= MAX_BODY_BYTES else 413


def _is_bare(start: Message) -> bool:
    kind = _headers(start).get("content-type", "")
    return start["status"] >= 400 and not kind.startswith("application/json")


def _headers(start: Message) -> Headers:
    return Headers(raw=list(start.get("headers", ())))


def _is_ours(host: str, port: int | None, *, any_address: bool) -> bool:
    """Tell whether `host` is a name that only this machine answers to, with our port."""
    name, written = _split(host)
    if written != str(80 if port is None else port) or "%" in name:  # no zones: [::1%25eth0]
        return False
    try:
        if name == "localhost":
            return True
        address = ip_address(name.strip("[]"))
        return address.is_loopback or (any_address and not address.is_unspecified)
    except ValueError:
        return False


def _split(host: str) -> tuple[str, str]:
    """Split a lower-case `Host` into name and port: `[::1]:8765`, `localhost`."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and not port.endswith("]") else (host, "80")
