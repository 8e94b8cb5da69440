"""Requests to the REST API, their answers, and what is tried again."""

import http.client
import json
import math
import random
import selectors
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from toolfold.errors import BadInput, RequestFailed, ToolfoldError, TooManyRequests

_MAX_BYTES: Final = 64 * 1024 * 1024
_FIRST_WAIT_S: Final = 0.1
_MAX_WAIT_S: Final = 60.0
_TOO_MANY: Final = 429
_BUSY: Final = frozenset({_TOO_MANY, 502, 503})

OnEvent = Callable[[str, Any], None]


class _Response(NamedTuple):
    status: int
    content: bytes
    retry_after_s: float | None = None
    """When to come again, where the door says that too much was asked."""


class RestConnection:
    """Speaks with one door over one connection, which is opened when needed and kept.

    Any thread may ask; they wait for each other. What is safe to repeat is asked again when the
    connection breaks or the door is busy: after a moment, or when the door says, if that is within
    a minute and the timeout. What is not is repeated only while no part of it was sent.
    """

    def __init__(self, url: str, *, key: str | None, timeout_s: float, retries: int) -> None:
        parts, self._host, self._port = _split(url)
        self._is_safe = parts.scheme == "https"
        self._prefix = parts.path.rstrip("/").removesuffix("/mcp")
        self._timeout_s = timeout_s
        self._retries = retries
        self._headers = {"User-Agent": "toolfold-client", "Accept": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._link: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        with self._lock:
            self._drop()

    def ask(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        may_repeat: bool,
    ) -> Any:
        """Return what the door answers.

        Raises:
            ToolfoldError: It refused or failed: of the class that has the code it said.
            RequestFailed: It cannot be reached, or what answers there is no toolfold.
        """
        address = self._address(path, query)
        wait_s = 0.0
        for attempt in range(self._retries + 1):
            # Not all who were sent away come back at the same moment.
            backoff_s = _FIRST_WAIT_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311
            if attempt:
                time.sleep(wait_s + backoff_s)
            wait_s = 0.0
            is_last = attempt == self._retries
            try:
                response = self._exchange(method, address, body)
            except _NotSent as error:
                if is_last:
                    raise self._unreachable(error) from None
                continue
            except (OSError, http.client.HTTPException) as error:
                if is_last or not may_repeat or isinstance(error, TimeoutError):
                    raise self._unreachable(error) from None
                continue
            wait_s = response.retry_after_s or 0.0
            may_wait = wait_s <= min(_MAX_WAIT_S, self._timeout_s)
            if response.status in _BUSY and may_repeat and may_wait and not is_last:
                continue
            return _answered(response)
        raise AssertionError("the last attempt returns or raises")

    def listen(self, *path: str, body: Mapping[str, object], on_event: OnEvent) -> None:
        """Ask for a stream, on a connection of its own, and hand its events over as they come.

        Raises:
            ToolfoldError: As `ask`.
        """
        with closing(self._new_link()) as link:
            # What `on_event` raises is the caller's own, so it is called out here.
            for event, value in self._stream(link, self._address(path, None), body):
                on_event(event, value)

    def _stream(
        self, link: http.client.HTTPConnection, address: str, body: Mapping[str, object]
    ) -> Iterator[tuple[str, Any]]:
        try:
            headers = {**self._headers, "Accept": "text/event-stream"}
            self._send(link, "POST", address, body, headers)
            response = link.getresponse()
            if response.status >= 400:
                _answered(_received(response, response.read(_MAX_BYTES)))
        except (_NotSent, OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        try:
            yield from _events(response)
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise RequestFailed(
                f"The stream broke off: {why}; `iter_runs` may know the run."
            ) from error

    def _exchange(self, method: str, address: str, body: Mapping[str, object] | None) -> _Response:
        with self._lock:
            if self._link is not None and _is_spent(self._link):
                self._drop()
            link = self._link = self._link or self._new_link()
            try:
                self._send(link, method, address, body, self._headers)
                response = link.getresponse()
                content = response.read(_MAX_BYTES + 1)
            except BaseException:
                self._drop()
                raise
            if response.will_close:
                self._drop()
        if len(content) > _MAX_BYTES:
            raise RequestFailed(f"The answer has more than {_MAX_BYTES:,} bytes. Ask for less.")
        return _received(response, content)

    @staticmethod
    def _send(
        link: http.client.HTTPConnection,
        method: str,
        address: str,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> None:
        try:
            if link.sock is None:
                link.connect()
        except OSError as error:
            raise _NotSent(str(error)) from None
        content = None if body is None else _encoded(body)
        kind = {} if content is None else {"Content-Type": "application/json"}
        link.request(method, address, body=content, headers={**headers, **kind})

    def _new_link(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_safe else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout_s)

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _address(self, path: tuple[str, ...], query: Mapping[str, object] | None) -> str:
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        place = "/".join([self._prefix, *(quote(part, safe="") for part in path)])
        return f"{place}?{urlencode(given)}" if given else place

    def _unreachable(self, error: Exception) -> RequestFailed:
        where = f"{self._host}:{self._port}" if self._port else self._host
        return RequestFailed(
            f"No answer from {where}: {str(error) or type(error).__name__}. "
            "Does `toolfold serve` run there?"
        )


def _split(url: str) -> tuple[SplitResult, str, int | None]:
    """Return the parts of an address, its host and its port."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in {"http", "https"} or not host:
        raise BadInput(f"The address of a door is like http://127.0.0.1:8765, not {url!r}.")
    return parts, host, port


class _NotSent(Exception):
    """No connection came about, so nothing was asked."""


def _is_spent(link: http.client.HTTPConnection) -> bool:
    """Whether the other side has closed a connection that we kept.

    What is sent on it would be lost, and whether it was done could not be known.
    """
    if link.sock is None:
        return True
    with selectors.DefaultSelector() as waiting:
        waiting.register(link.sock, selectors.EVENT_READ)
        return bool(waiting.select(0))


def _encoded(body: Mapping[str, object]) -> bytes:
    given = {name: value for name, value in body.items() if value is not None}
    try:
        return json.dumps(given, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"This cannot be sent as JSON: {error}.") from error


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"it holds a value of the type {type(value).__name__}")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if isoformat else str(value)


def _received(response: http.client.HTTPResponse, content: bytes) -> _Response:
    if response.status != _TOO_MANY:
        return _Response(response.status, content)
    return _Response(
        response.status, content, _seconds(response.headers.get("Retry-After"), time.time())
    )


def _seconds(header: str | None, now: float) -> float | None:
    """Read `Retry-After`: seconds, or a date; None where it says neither."""
    if header is None:
        return None
    try:
        wait_s = float(header)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(header).timestamp() - now
        except ValueError:
            return None
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


def _answered(response: _Response) -> Any:
    """Return what an answer holds.

    Raises:
        ToolfoldError: It is a failure; of too many requests, with when to come again.
    """
    try:
        return _value(response.status, response.content)
    except TooManyRequests as error:
        if response.retry_after_s is not None:
            error.retry_after_s = math.ceil(response.retry_after_s)
        raise


def _value(status: int, content: bytes) -> Any:
    """Return what an answer holds.

    Raises:
        ToolfoldError: It is a failure.
    """
    try:
        answer = json.loads(content)
        if status < 400:
            return answer
        error = answer["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, TypeError, KeyError, RecursionError) as trouble:
        shown = content[:100].decode(errors="replace")
        raise RequestFailed(f"This is no answer of toolfold: {status} {shown!r}.") from trouble
    raise failure_of(code, message)


def failure_of(code: str, message: str) -> ToolfoldError:
    """Return the error that has a code."""
    kinds = {kind.code: kind for kind in _descendants(ToolfoldError)}
    if code in kinds:
        return kinds[code](message)
    failure = RequestFailed(message)
    failure.code = code
    return failure


def _descendants(kind: type[ToolfoldError]) -> Iterator[type[ToolfoldError]]:
    for child in kind.__subclasses__():
        if child.__module__ == kind.__module__:
            yield child
            yield from _descendants(child)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Read a stream of events."""
    event = ""
    while line := response.readline(_MAX_BYTES):
        text = line.decode(errors="replace").rstrip("\r\n")
        if text.startswith("event: "):
            event = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield event, _event_value(text.removeprefix("data: "))


def _event_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestFailed(
            f"The stream broke off, or does not come from toolfold: {text[:100]!r}."
        ) from error
