"""Bytes into lines, and lines into messages of MCP."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urljoin

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
from anyio.abc import TaskStatus
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.message import SessionMessage
from pydantic_core import from_json

from toolfold.catalog.large import LargeParts, Spool
from toolfold.catalog.sanitize import readable
from toolfold.catalog.secrets import RedactedBytes, Redactor


class MessageTooLong(Exception):
    """A message has passed its bound and has no end yet."""


class MessageBuffer:
    """What has arrived of one message: kept in pieces, and a very long one in a file."""

    def __init__(self, max_bytes: int, spool_bytes: int, spool: Callable[[], Spool]) -> None:
        self._max_bytes = max_bytes
        self._spool_bytes = spool_bytes
        self._make_spool = spool
        self._spool: Spool | None = None
        self._pieces: list[bytes] = []
        self._size = 0

    def take(self) -> bytes | Spool:
        """Return what there is, and begin anew."""
        taken = self._spool or b"".join(self._pieces)
        self._pieces, self._size, self._spool = [], 0, None
        return taken

    def add(self, piece: bytes) -> None:
        """Add what has arrived.

        Raises:
            TooLong: It has passed the bound.
        """
        self._size += len(piece)
        if self._size > self._max_bytes:
            raise MessageTooLong
        if self._spool is None and self._size > self._spool_bytes:
            self._spool = self._make_spool()
            for earlier in self._pieces:
                self._spool.add(earlier)
            self._pieces = []
        if self._spool is None:
            self._pieces.append(piece)
        else:
            self._spool.add(piece)


class LineSplitter:
    """Cuts what arrives into lines, without what `redactor` takes out."""

    def __init__(
        self,
        max_bytes: int,
        spool_bytes: int,
        spool: Callable[[], Spool],
        redactor: Redactor | None = None,
    ) -> None:
        self._line = MessageBuffer(max_bytes, spool_bytes, spool)
        self._passing = None if redactor is None else RedactedBytes(redactor)

    def feed(self, chunk: bytes) -> Iterator[bytes | Spool]:
        """Yield the lines that are whole now.

        Raises:
            TooLong: One has passed the bound.
        """
        if self._passing is not None:
            chunk = self._passing.feed(chunk)
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._line.add(end)
            yield self._line.take()
        self._line.add(rest)


def parse_message(line: bytes) -> SessionMessage | Exception:
    """Return a message, or why a line is none, which the session is told."""
    text = line.decode("utf-8", "replace")
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        mended = readable(text.encode())
        if mended == line:
            return error
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(mended, by_name=False))
    except ValueError as error:
        return error


def read_json(line: bytes) -> Any:
    """Return what a line says, mended if that cannot be read as it is; None if it says nothing."""
    text = line.decode("utf-8", "replace")
    with suppress(ValueError):
        return from_json(text)
    with suppress(ValueError):
        return from_json(readable(text.encode()))
    return None


_log = logging.getLogger(__name__)

# Reach a server over the HTTP transport of 2024: it speaks on one stream, and is posted to.
#
# The SDK's own client takes events of up to 1 MiB, whatever its user wants.

_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def sse_streams(
    http: httpx2.AsyncClient,
    url: str,
    *,
    max_event_bytes: int,
    on_too_long: Callable[[], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """Connect for the length of this context; yield the streams that the SDK's client uses.

    An event longer than `max_event_bytes` is told to `on_too_long`, and ends the stream.

    Raises:
        httpx2.HTTPError: The server cannot be reached, or refuses.
    """
    async with sse_within_origin(http, url, max_event_size=max_event_bytes) as events:
        events.response.raise_for_status()
        channel = _SseChannel(http, url, on_too_long)
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(channel.receive, events)
                tasks.start_soon(channel.send)
                yield channel.reader, channel.writer
                tasks.cancel_scope.cancel()
        finally:
            channel.close()


class _SseChannel:
    """What passes between the session and one server."""

    def __init__(self, http: httpx2.AsyncClient, url: str, on_too_long: Callable[[], None]) -> None:
        self._http = http
        self._url = httpx2.URL(url)
        self._on_too_long = on_too_long
        self._endpoint = ""
        self._to_reader, self.reader = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ]()
        self.writer, self._from_writer = anyio.create_memory_object_stream[SessionMessage]()

    async def receive(
        self,
        events: httpx2.EventSource,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Pass on what the server says; begun once it has said where to post."""
        async with self._to_reader:
            try:
                async for event in events:
                    if event.event == "endpoint" and not self._endpoint:
                        self._endpoint = self._own(event.data)
                        task_status.started()
                    elif event.event == "message" and event.data:
                        await self._to_reader.send(parse_message(event.data.encode()))
            except httpx2.HTTPError as error:
                if not self._endpoint:
                    raise
                if "byte limit" in str(error):
                    self._on_too_long()
                _log.info("The stream of %s ended: %s", self._url.host, error)
            except _GONE:
                return  # the session is gone

    async def send(self) -> None:
        """Post what the session says, in its order."""
        with suppress(*_GONE):
            async for each in self._from_writer:
                await self._post(each.message)

    async def _post(self, message: types.JSONRPCMessage) -> None:
        body = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await request_within_origin(self._http, "POST", self._endpoint, json=body)
            response.raise_for_status()
        except httpx2.HTTPError as error:
            if isinstance(message, types.JSONRPCRequest):
                reason = types.ErrorData(code=types.INTERNAL_ERROR, message=str(error))
                answer = types.JSONRPCError(jsonrpc="2.0", id=message.id, error=reason)
                await self._to_reader.send(SessionMessage(answer))

    def _own(self, endpoint: str) -> str:
        """Return where to post, which must be where the stream comes from."""
        found = httpx2.URL(urljoin(str(self._url), endpoint))
        place = found.scheme, found.host, found.port
        if place != (self._url.scheme, self._url.host, self._url.port):
            raise httpx2.ProtocolError(f"It wants messages posted elsewhere: to {found.host}.")
        return str(found)

    def close(self) -> None:
        """Leave nothing open."""
        for stream in (self._to_reader, self.reader, self.writer, self._from_writer):
            stream.close()


# What servers answer over HTTP, on its way to the SDK: long messages are folded, and all bounded.
#
# Nothing is asked for in a compressed form, and nothing taken: a few bytes could become very many.

AS_IT_IS: Final = {"accept-encoding": "identity"}
"""The header that asks for it."""

_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_DATA: Final = b"data:"


def fold_body(response: httpx2.Response, parts: LargeParts) -> None:
    """Have long messages in a response folded before anybody reads it.

    Raises:
        httpx2.ProtocolError: It is compressed.
    """
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise httpx2.RemoteProtocolError(f"It answers in the encoding {encoding[:20]!r}, unasked.")
    kind = response.headers.get("content-type", "").lower()
    if kind.startswith(_EVENTS):
        response.stream = _Body(response.stream, parts, _events)
    elif kind.startswith(_JSON):
        response.stream = _Body(response.stream, parts, _one_message)
    else:
        response.stream = _Body(response.stream, parts, _bounded)


_Fold = Callable[[Any, LargeParts], AsyncIterator[bytes]]


class _Body(httpx2.AsyncByteStream):
    """A body of which something else is passed on."""

    def __init__(self, body: Any, parts: LargeParts, fold: _Fold) -> None:
        self._body = body
        self._folded = fold(body, parts)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._folded

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bounded(body: Any, parts: LargeParts) -> AsyncIterator[bytes]:
    """Pass on what is no message, but not without end."""
    size = 0
    async for chunk in body:
        size += len(chunk)
        if size > parts.sizes.message_bytes:
            raise httpx2.StreamError(_too_long(parts.sizes.message_bytes))
        yield chunk


async def _one_message(body: Any, parts: LargeParts) -> AsyncIterator[bytes]:
    sizes = parts.sizes
    message = MessageBuffer(sizes.line_bytes, sizes.result_bytes, parts.spool)
    try:
        async for chunk in body:
            message.add(chunk)
    except MessageTooLong as error:
        raise httpx2.StreamError(_too_long(sizes.line_bytes)) from error
    whole = message.take()
    if isinstance(whole, Spool):
        whole = await anyio.to_thread.run_sync(parts.fold, whole)
    yield readable(whole)


async def _events(body: Any, parts: LargeParts) -> AsyncIterator[bytes]:
    """Fold the data of long events, which stand in a line each."""
    sizes = parts.sizes
    lines = LineSplitter(sizes.line_bytes, sizes.result_bytes, parts.spool)
    try:
        async for chunk in body:
            for line in lines.feed(chunk):
                if isinstance(line, Spool):
                    folded = await anyio.to_thread.run_sync(parts.fold, line, len(_DATA))
                    yield b"%b%b\n" % (_DATA, readable(folded))
                elif line.startswith(_DATA):
                    yield b"%b%b\n" % (_DATA, readable(line[len(_DATA) :]))
                else:
                    yield line + b"\n"
    except MessageTooLong as error:
        raise httpx2.SSEError(_too_long(sizes.line_bytes)) from error


def _too_long(max_bytes: int) -> str:
    return f"The answer exceeded the {max_bytes} byte limit."
