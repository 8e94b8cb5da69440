"""Responses of APIs into results as servers give them."""

import base64
import json
from typing import Final

import httpx2
import mcp_types as types

from toolfold.catalog.large import LargeParts
from toolfold.jsontypes import Json

_MAX_ERROR_BYTES: Final = 16_384
_MAX_ERROR_CHARS: Final = 1_500
_MAX_BINARY_BYTES: Final = 64 * 1024 * 1024
_TEXTS: Final = ("json", "xml", "text/", "yaml", "javascript", "urlencoded", "csv", "graphql")


class TooLong(Exception):
    """A body has more bytes than are taken."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer has more than {most:,} bytes")


async def read_result(
    response: httpx2.Response, parts: LargeParts, *, is_head: bool = False
) -> types.CallToolResult:
    """Return what a response says, as a value where it is one.

    A text that is too long to be held is kept in a file, and stands in the result by its mark.

    Raises:
        TooLong: It is longer than what is kept in files.
        httpx2.HTTPError: It broke off.
    """
    if not response.is_success:
        return await _failure(response)
    if is_head:
        return _text(json.dumps({"status": response.status_code, **dict(response.headers)}))
    media = response.headers.get("content-type", "")
    if media and not any(each in media.lower() for each in _TEXTS):
        return await _binary(response, media.partition(";")[0].strip())
    return await _readable(response, parts)


async def _readable(response: httpx2.Response, parts: LargeParts) -> types.CallToolResult:
    sizes = parts.sizes
    held, spool = bytearray(), None
    async for piece in response.aiter_bytes():
        if spool is None and len(held) + len(piece) <= sizes.result_bytes:
            held += piece
            continue
        if spool is None:
            spool = parts.spool()
            spool.add(bytes(held))
        spool.add(piece)
        if spool.size > sizes.large_result_bytes:
            raise TooLong(sizes.large_result_bytes)
    if spool is not None:
        return _text(parts.keep(spool))
    return _held(response, held) if held.strip() else _value(None)


def _held(response: httpx2.Response, held: bytearray) -> types.CallToolResult:
    text = held.decode(response.encoding or "utf-8", "replace")
    if "json" not in response.headers.get("content-type", "json"):
        return _text(text)
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return _text(text)
    return _text(text) if isinstance(value, dict | list) else _value(value)


def _value(value: Json) -> types.CallToolResult:
    result = _text("" if value is None else json.dumps(value, ensure_ascii=False))
    return result.model_copy(update={"structured_content": {"result": value}})


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _binary(response: httpx2.Response, media: str) -> types.CallToolResult:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > _MAX_BINARY_BYTES:
            raise TooLong(_MAX_BINARY_BYTES)
    blob = types.BlobResourceContents(
        uri="toolfold:answer", mime_type=media, blob=base64.b64encode(content).decode()
    )
    return types.CallToolResult(content=[types.EmbeddedResource(type="resource", resource=blob)])


async def _failure(response: httpx2.Response) -> types.CallToolResult:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > _MAX_ERROR_BYTES:
            break
    words = content.decode("utf-8", "replace").strip()[:_MAX_ERROR_CHARS]
    reason = f"{response.status_code} {response.reason_phrase}".strip()
    return _error(f"{reason}: {words}" if words else reason)


def _error(words: str) -> types.CallToolResult:
    return _text(words).model_copy(update={"is_error": True})
