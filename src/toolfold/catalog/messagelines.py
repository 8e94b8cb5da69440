"""Bytes into lines, and lines into messages of MCP."""

from collections.abc import Iterator

import mcp_types as types
from mcp.shared.message import SessionMessage


class LineTooLong(Exception):
    """A line has passed its bound and has no end yet."""


class Lines:
    """Cuts what arrives into lines; a long one is kept in pieces until it is whole."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that are whole now.

        Raises:
            LineTooLong: One has passed the bound.
        """
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield b"".join(self._pieces)
            self._pieces, self._size = [], 0
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            raise LineTooLong
        self._pieces.append(piece)


def parse_message(line: bytes) -> SessionMessage | Exception:
    """Return a message, or why a line is none, which the session is told."""
    try:
        text = line.decode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error
