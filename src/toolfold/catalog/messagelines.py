"""Bytes into lines, and lines into messages of MCP."""

from collections.abc import Callable, Iterator

import mcp_types as types
from mcp.shared.message import SessionMessage

from toolfold.catalog.large import Spool


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
    """Cuts what arrives into lines."""

    def __init__(self, max_bytes: int, spool_bytes: int, spool: Callable[[], Spool]) -> None:
        self._line = MessageBuffer(max_bytes, spool_bytes, spool)

    def feed(self, chunk: bytes) -> Iterator[bytes | Spool]:
        """Yield the lines that are whole now.

        Raises:
            TooLong: One has passed the bound.
        """
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._line.add(end)
            yield self._line.take()
        self._line.add(rest)


def parse_message(line: bytes) -> SessionMessage | Exception:
    """Return a message, or why a line is none, which the session is told."""
    try:
        text = line.decode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error
