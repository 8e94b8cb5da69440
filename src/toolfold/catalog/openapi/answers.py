"""Responses of APIs into results as servers give them."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Final

import httpx2
import mcp_types as types

from toolfold.catalog.large import LargeParts, TooLong
from toolfold.catalog.sanitize import plain
from toolfold.catalog.secrets import Redactor, redacted
from toolfold.jsontypes import Json

_MAX_ERROR_BYTES: Final = 16_384
_MAX_ERROR_CHARS: Final = 1_500
_MAX_BINARY_BYTES: Final = 64 * 1024 * 1024
_TEXTS: Final = ("json", "xml", "text/", "yaml", "javascript", "urlencoded", "csv", "graphql")


async def read_result(
    response: httpx2.Response,
    parts: LargeParts,
    *,
    is_head: bool = False,
    redactor: Redactor | None = None,
) -> types.CallToolResult:
    """Return what a response says, as a value where it is one.

    A text that is too long to be held is kept in a file, and stands in the result by its mark.
    `redactor` takes out what it must not repeat.

    Raises:
        TooLong: It is longer than what is kept in files.
        httpx2.HTTPError: It broke off.
    """
    pieces = redacted(response.aiter_bytes(), redactor)
    if not response.is_success:
        return await _failure(response, pieces)
    if is_head:
        text = json.dumps({"status": response.status_code, **dict(response.headers)})
        return _text(text if redactor is None else redactor.text(text))
    media = response.headers.get("content-type", "")
    if media and not any(each in media.lower() for each in _TEXTS):
        return await _binary(pieces, media.partition(";")[0].strip())
    return await _readable(response, pieces, parts)


async def _readable(
    response: httpx2.Response, pieces: AsyncIterator[bytes], parts: LargeParts
) -> types.CallToolResult:
    gathered = await parts.gather(pieces)
    if isinstance(gathered, str):
        return _text(gathered)
    return _held(response, gathered) if gathered.strip() else _value(None)


def _held(response: httpx2.Response, held: bytes) -> types.CallToolResult:
    text = held.decode(response.encoding or "utf-8", "replace")
    if "json" not in response.headers.get("content-type", "json"):
        return _text(text)
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return _text(text)
    return _text(text) if isinstance(value, dict | list) else _value(value)


def result_of(value: Json) -> types.CallToolResult:
    """Return a value as a result."""
    if isinstance(value, dict | list):
        return _text(json.dumps(value, ensure_ascii=False))
    return _value(value)


def failed_with(words: str) -> types.CallToolResult:
    """Return a result that says that there is none."""
    return _text(words).model_copy(update={"is_error": True})


def _value(value: Json) -> types.CallToolResult:
    result = _text("" if value is None else json.dumps(value, ensure_ascii=False))
    return result.model_copy(update={"structured_content": {"result": value}})


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _binary(pieces: AsyncIterator[bytes], media: str) -> types.CallToolResult:
    content = bytearray()
    async for piece in pieces:
        content += piece
        if len(content) > _MAX_BINARY_BYTES:
            raise TooLong(_MAX_BINARY_BYTES)
    blob = types.BlobResourceContents(
        uri="toolfold:answer", mime_type=media, blob=base64.b64encode(content).decode()
    )
    return types.CallToolResult(content=[types.EmbeddedResource(type="resource", resource=blob)])


async def _failure(response: httpx2.Response, pieces: AsyncIterator[bytes]) -> types.CallToolResult:
    content = bytearray()
    async for piece in pieces:
        content += piece
        if len(content) > _MAX_ERROR_BYTES:
            break
    words = content.decode("utf-8", "replace").strip()[:_MAX_ERROR_CHARS]
    reason = f"{response.status_code} {response.reason_phrase}".strip()
    return failed_with(plain(f"{reason}: {words}" if words else reason))
