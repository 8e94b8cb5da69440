"""Ask an authorization server, and read no more than such an answer can be long."""

from typing import Final

import httpx2

_MAX_BYTES: Final = 256 * 1024


async def ask(request: httpx2.Request, *, timeout_s: float) -> httpx2.Response:
    """Send a request; return status and body of the answer.

    Raises:
        httpx2.HTTPError: Nobody answers, or with too much.
    """
    async with httpx2.AsyncClient(timeout=timeout_s) as http:
        response = await http.send(request, stream=True)
        try:
            body = await _body(response)
        finally:
            await response.aclose()
    return httpx2.Response(response.status_code, content=body, request=request)


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise httpx2.ReadError(f"The answer has more than {_MAX_BYTES:,} bytes.")
    return bytes(body)
