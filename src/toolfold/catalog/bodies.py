"""What servers answer over HTTP, on its way to the SDK: long messages are folded, and all bounded.

Nothing is asked for in a compressed form, and nothing taken: a few bytes could become very many.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import anyio.to_thread
import httpx2

from toolfold.catalog.large import LargeParts, Spool
from toolfold.catalog.messagelines import LineSplitter, MessageBuffer, MessageTooLong

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
    yield await anyio.to_thread.run_sync(parts.fold, whole) if isinstance(whole, Spool) else whole


async def _events(body: Any, parts: LargeParts) -> AsyncIterator[bytes]:
    """Fold the data of long events, which stand in a line each."""
    sizes = parts.sizes
    lines = LineSplitter(sizes.line_bytes, sizes.result_bytes, parts.spool)
    try:
        async for chunk in body:
            for line in lines.feed(chunk):
                if isinstance(line, Spool):
                    folded = await anyio.to_thread.run_sync(parts.fold, line, len(_DATA))
                    yield b"%b%b\n" % (_DATA, folded)
                else:
                    yield line + b"\n"
    except MessageTooLong as error:
        raise httpx2.SSEError(_too_long(sizes.line_bytes)) from error


def _too_long(max_bytes: int) -> str:
    return f"The answer exceeded the {max_bytes} byte limit."
