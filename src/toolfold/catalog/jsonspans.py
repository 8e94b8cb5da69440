"""Where the parts of a long JSON text begin and end, without building any of them. Pure.

It says where values are, not that they are sound: what is cut out is parsed by whoever reads it.
"""

import re
from collections.abc import Callable
from mmap import mmap
from typing import Final

_WINDOW: Final = 1 << 20
_MAX_KEY: Final = 1_024
_MAX_PARTS: Final = 100_000
_MAX_STEPS: Final = 10_000_000
_DEEPEST: Final = 1_000
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_SCALAR: Final = re.compile(rb"[-+.0-9A-Za-z]++")
_IN_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _nested(depth: int) -> bytes:
    """Return what matches values that are nested so deeply, and all that is between them."""
    deeper = rb"" if depth == 0 else rb"|\{%b\}|\[%b\]" % ((_nested(depth - 1),) * 2)
    return rb"(?:[^\[\]{}\"]++|" + _STRING + deeper + rb")*+"


# Whole records are passed over at once: most of a large answer is those.
_BETWEEN: Final = re.compile(_nested(3), re.DOTALL)

OnMember = Callable[[bytes, int], int]
"""Takes a key and where its value begins; returns where that ends."""
OnItem = Callable[[int], int]
"""The same of an item."""


class Malformed(Exception):
    """This is not valid JSON."""


class TooMuch(Exception):
    """It has more parts than anybody means to send, or is nested more deeply."""


class Spans:
    """Says where the parts of one text are, in a bounded number of steps."""

    def __init__(self, text: mmap | bytes) -> None:
        self._text = text
        self._parts = _MAX_PARTS
        self._steps = _MAX_STEPS

    def read_object(self, start: int, on_member: OnMember) -> int:
        """Go through the object that begins at `start`, and return where it ends.

        Raises:
            Malformed: There is none, or it does not end.
            TooMuch: It has too many members, together with what was gone through before.
        """
        text = self._text
        at = _opened(text, start, b"{")
        while not _is(text, at, b"}"):
            self._count_part()
            key_end = _string_end(text, at)
            if key_end - at > _MAX_KEY:
                raise Malformed
            key = text[at + 1 : key_end - 1]
            at = _after(text, on_member(key, _opened(text, key_end, b":")), b"}")
        return at + 1

    def read_list(self, start: int, on_item: OnItem) -> int:
        """Go through the list that begins at `start`, and return where it ends.

        Raises:
            Malformed: There is none, or it does not end.
            TooMuch: It has too many items, together with what was gone through before.
        """
        text = self._text
        at = _opened(text, start, b"[")
        while not _is(text, at, b"]"):
            self._count_part()
            at = _after(text, on_item(at), b"]")
        return at + 1

    def value_end(self, start: int) -> int:
        """Return where the value that begins at `start` ends.

        Raises:
            Malformed: There is none.
            TooMuch: It is nested too deeply, or takes too many steps.
        """
        text = self._text
        if _is(text, start, b'"'):
            return _string_end(text, start)
        if _is(text, start, b"{") or _is(text, start, b"["):
            return self._container_end(start)
        found = _SCALAR.match(text, start, start + _WINDOW)
        if found is None:
            raise Malformed
        return found.end()

    def _container_end(self, start: int) -> int:
        text = self._text
        depth, at = 1, start + 1
        while depth:
            self._steps -= 1
            if depth > _DEEPEST or self._steps < 0:
                raise TooMuch
            found = _BETWEEN.match(text, at, min(at + _WINDOW, len(text)))
            at = found.end() if found else at
            if at >= len(text):
                raise Malformed
            character = text[at : at + 1]
            if character == b'"':  # cut off by the window
                at = _string_end(text, at)
            elif character in b"{[":
                depth, at = depth + 1, at + 1
            elif character in b"]}":
                depth, at = depth - 1, at + 1
        return at

    def _count_part(self) -> None:
        self._parts -= 1
        if self._parts < 0:
            raise TooMuch


def _string_end(text: mmap | bytes, start: int) -> int:
    if not _is(text, start, b'"'):
        raise Malformed
    at = start + 1
    while at < len(text):
        found = _IN_STRING.match(text, at, min(at + _WINDOW, len(text)))
        if found is None or (found.end() == at and not _is(text, at, b'"')):
            raise Malformed
        at = found.end()
        if _is(text, at, b'"'):
            return at + 1
    raise Malformed


def _opened(text: mmap | bytes, at: int, expected: bytes) -> int:
    """Return where what stands after `expected` begins."""
    at = _solid(text, at)
    if not _is(text, at, expected):
        raise Malformed
    return _solid(text, at + 1)


def _after(text: mmap | bytes, at: int, closing: bytes) -> int:
    """Return where the next part begins after a comma, or the closing bracket."""
    at = _solid(text, at)
    return at if _is(text, at, closing) else _opened(text, at, b",")


def _solid(text: mmap | bytes, at: int) -> int:
    """Return where the next character is that is no space; others have their turn in between."""
    while found := _SPACE.match(text, at, at + _WINDOW):
        if found.end() < at + _WINDOW:
            return found.end()
        at = found.end()
    return at


def _is(text: mmap | bytes, at: int, expected: bytes) -> bool:
    return text[at : at + 1] == expected
