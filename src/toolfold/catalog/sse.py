"""Reach a server over the HTTP transport of 2024: it speaks on one stream, and is posted to.

The SDK's own client takes events of up to 1 MiB, whatever its user wants.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urljoin

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskStatus
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.message import SessionMessage

from toolfold.catalog.messagelines import parse_message

_log = logging.getLogger(__name__)

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
