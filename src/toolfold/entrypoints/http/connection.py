"""One HTTP connection, as uvicorn speaks it, within bounds that uvicorn does not know."""

import json
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolfold.entrypoints.http.guard import BODY_TIME_S, REASONS

HEAD_TIME_S: Final = BODY_TIME_S
"""How long a client may take from its first byte to the last of its headers."""


class HttpConnection(H11Protocol):
    """Waits for headers no longer than for a body, and refuses what is no HTTP in our own shape."""

    _deadline: Any = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Go on waiting while headers are incomplete, however many small pieces come."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the rest of a request that has begun behind this one."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read."""
        code, _sentence = REASONS[400]
        self._refuse(400, code, f"This is no HTTP request that can be read: {msg}")

    def _wait_for_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_TIME_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            return
        if not self.conn.trailing_data[0]:  # nothing was asked
            self.transport.close()
            return
        code, _sentence = REASONS[408]
        self._refuse(408, code, f"The headers did not arrive within {HEAD_TIME_S:g} s.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        body = json.dumps({"error": {"code": code, "message": message}}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=b""),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
