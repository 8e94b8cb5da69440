"""Tell open pages that something changed. Nothing is looked at while no page is open."""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from toolfold.entrypoints.dashboard.render import HEADERS
from toolfold.entrypoints.rest.disconnect import until_left

_LOOK_S: Final = 0.25
_BEAT_LOOKS: Final = 64

Version = Callable[[], Awaitable[str]]
"""Returns a text that differs once something has changed."""


class ChangeStream(Response):
    """Sends `changed` each time the version differs, until the page is closed.

    The first version is the one that the page shows, so nothing is missed that happened between
    the making of the page and its connecting.
    """

    def __init__(self, version: Version, shown: str) -> None:
        super().__init__(headers=HEADERS, media_type="text/event-stream")
        del self.headers["content-length"]
        self._version = version
        self._shown = shown

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Look every moment; a comment now and then finds out whether the page is still there."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with until_left(receive):
            known = self._shown
            await _send(send, "retry: 1000\n\n")
            while True:
                for _ in range(_BEAT_LOOKS):
                    found = await self._version()
                    if found != known:
                        known = found
                        await _send(send, "event: changed\ndata: 1\n\n")
                    await anyio.sleep(_LOOK_S)
                await _send(send, ": still here\n\n")


async def _send(send: Send, text: str) -> None:
    message: Message = {"type": "http.response.body", "body": text.encode(), "more_body": True}
    await send(message)
