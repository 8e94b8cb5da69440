"""Answers that are too long to be held: kept in files without names, and cut out of messages.

What the session parses is the message with a mark in place of each long part. Nobody can guess a
mark, so a server cannot have us hand out what another answered.
"""

import codecs
import json
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import accumulate, count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final, Literal

from toolfold.catalog.jsonspans import Malformed, Spans, TooMuch
from toolfold.errors import ToolFailed

TOO_LONG: Final = "toolfold: the answer exceeds the byte limit"

_MAX_ESCAPE: Final = 6
_ENVELOPE_BYTES: Final = 64 * 1024
_PART_BYTES: Final = 65_536
_KEPT: Final = 16  # answers that nobody has fetched: their calls may have been cancelled
_WINDOW: Final = 1 << 20
# Whole escapes only; the two halves of a pair stay together.
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE: Final = re.compile(
    rb"(?:[^\\]++|" + _HIGH + _LOW + rb"|" + _HIGH + rb"(?!" + _LOW + rb")(?=.{6})"
    rb"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*+",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSizes:
    """How long messages may be."""

    result_bytes: int
    """A result that is held in memory. A longer message is kept in a file."""
    large_result_bytes: int
    """One that is kept in a file."""
    spool_directory: Path | None = None
    """Where such files are; by default where temporary ones are."""

    @property
    def message_bytes(self) -> int:
        """A message that is held in memory: each character of its result may be escaped."""
        return _MAX_ESCAPE * self.result_bytes + _ENVELOPE_BYTES

    @property
    def line_bytes(self) -> int:
        """The longest message: a result may stand in it as text and as structured content."""
        return max(self.message_bytes, 2 * self.large_result_bytes + _ENVELOPE_BYTES)


PartKind = Literal["text", "json"]


class Spool:
    """One long message, in a file that has no name and is gone when nobody holds it."""

    def __init__(self, directory: Path | None) -> None:
        if directory is not None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # it is closed with us
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Add what has arrived."""
        self._file.write(piece)
        self.size += len(piece)

    def map(self) -> mmap:
        """Return it to be read; nothing can be added from then on."""
        with self._file as file:
            file.flush()
            return mmap(file.fileno(), 0, access=ACCESS_READ)

    def __del__(self) -> None:
        """Let go of a message that never came to its end."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class LargePart:
    """One value of a message that was not parsed."""

    text: mmap
    start: int
    end: int
    kind: PartKind

    @property
    def size(self) -> int:
        """How long it is as it was sent."""
        return self.end - self.start

    def fits(self, max_bytes: int) -> bool:
        """Whether what it spells is no longer than that."""
        if self.size <= max_bytes:
            return True
        spelt = accumulate(map(len, self.chunks()))
        return all(size <= max_bytes for size in spelt)

    def chunks(self) -> Iterator[bytes]:
        """Yield the JSON, or the text that it spells, piece by piece in UTF-8."""
        return self._spelt() if self.kind == "text" else self._sent()

    def _sent(self) -> Iterator[bytes]:
        for at in range(self.start, self.end, _WINDOW):
            yield self.text[at : min(at + _WINDOW, self.end)]

    def _spelt(self) -> Iterator[bytes]:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        at, end = self.start + 1, self.end - 1
        while at < end:
            limit = min(at + _WINDOW, end)
            found = _WHOLE.match(self.text, at, limit)
            cut = found.end() if found and found.end() > at else limit
            spelt = decode(self.text[at:cut], cut == end)
            yield str(json.loads(f'"{spelt}"', strict=False)).encode("utf-8", "replace")
            at = cut


class TooLong(Exception):
    """A text has more bytes than are taken."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer has more than {most:,} bytes")


class LargeParts:
    """The long parts of messages, until whoever waits for an answer takes them."""

    def __init__(self, sizes: MessageSizes) -> None:
        self.sizes = sizes
        self._secret = secrets.token_hex(16)
        self._numbers = count()
        self._parts: dict[str, LargePart] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be taken."""
        return not self._parts

    def spool(self) -> Spool:
        """Return a file for one long message."""
        return Spool(self.sizes.spool_directory)

    async def gather(self, pieces: AsyncIterator[bytes]) -> bytes | str:
        """Return a text that comes in pieces; where it is too long to be held, its mark.

        Raises:
            TooLong: It is longer than what is kept in files.
        """
        held, spool = bytearray(), None
        async for piece in pieces:
            if spool is None and len(held) + len(piece) <= self.sizes.result_bytes:
                held += piece
                continue
            if spool is None:
                spool = self.spool()
                spool.add(bytes(held))
            spool.add(piece)
            if spool.size > self.sizes.large_result_bytes:
                raise TooLong(self.sizes.large_result_bytes)
        return bytes(held) if spool is None else self.keep(spool)

    def fold(self, spool: Spool, start: int = 0) -> bytes:
        """Return a message with marks in place of its long parts. Takes a while: use a thread.

        It begins at `start`. One that stays too long even so becomes an error that answers the same
        request.
        """
        text = spool.map()
        message = _Message(text, start)
        try:
            message.read()
        except TooMuch:
            return _refusal(message.id)
        except Malformed:
            return text[start:_PART_BYTES]  # which is no message either
        rest = spool.size - sum(part.size for part in message.parts)
        if rest > self.sizes.message_bytes:
            return _refusal(message.id)
        marked = b"".join(self._marked(text, start, message.parts))
        self._let_go()
        return marked

    def keep(self, spool: Spool) -> str:
        """Return the mark of a text that is kept as it was sent."""
        text = spool.map()
        mark = f"{self._secret}:{next(self._numbers)}"
        self._parts[mark] = LargePart(text, 0, spool.size, "json")
        self._let_go()
        return mark

    def take(self, value: Any) -> LargePart | None:
        """Return the part that a value of a message stands for, once; None if it is itself.

        Raises:
            ToolFailed: It was let go of, because too many others came after it.
        """
        mark = value.get(self._secret) if isinstance(value, dict) else value
        if not isinstance(mark, str) or not mark.startswith(self._secret):
            return None
        part = self._parts.pop(mark, None)
        if part is None:
            raise ToolFailed("The answer was too large to be kept beside others. Try again.")
        return part

    def _marked(self, text: mmap, at: int, parts: list[LargePart]) -> Iterator[bytes]:
        for part in parts:
            yield text[at : part.start]
            mark = json.dumps(f"{self._secret}:{next(self._numbers)}")
            self._parts[json.loads(mark)] = part
            marked = mark if part.kind == "text" else f'{{"{self._secret}":{mark}}}'
            yield marked.encode()
            at = part.end
        yield text[at:]

    def _let_go(self) -> None:
        """Let go of the oldest messages, if nobody fetches them."""
        messages = dict.fromkeys(id(part.text) for part in self._parts.values())
        surplus = set(list(messages)[:-_KEPT])
        if surplus:
            kept = self._parts.items()
            self._parts = {mark: part for mark, part in kept if id(part.text) not in surplus}


class _Message:
    """The long texts and structured contents of a message, found in one go."""

    def __init__(self, text: mmap, start: int) -> None:
        self._start = start
        self.id: bytes | None = None
        self.parts: list[LargePart] = []
        self._text = text
        self._spans = Spans(text)

    def read(self) -> None:
        """Find them.

        Raises:
            Malformed: It is no message.
            TooMuch: It has more parts than can be gone through.
        """
        self._spans.read_object(self._start, self._member)

    def _member(self, key: bytes, start: int) -> int:
        if key == b"result" and self._opens(start, b"{"):
            return self._spans.read_object(start, self._result)
        end = self._spans.value_end(start)
        if key == b"id" and end - start < _PART_BYTES:
            self.id = self._text[start:end]
        return end

    def _result(self, key: bytes, start: int) -> int:
        if key == b"content" and self._opens(start, b"["):
            return self._spans.read_list(start, self._block)
        return self._value(start, "json" if key == b"structuredContent" else None)

    def _block(self, start: int) -> int:
        if self._opens(start, b"{"):
            return self._spans.read_object(start, self._field)
        return self._spans.value_end(start)

    def _field(self, key: bytes, start: int) -> int:
        is_text = key == b"text" and self._opens(start, b'"')
        return self._value(start, "text" if is_text else None)

    def _value(self, start: int, kind: PartKind | None) -> int:
        end = self._spans.value_end(start)
        if kind is not None and end - start > _PART_BYTES:
            self.parts.append(LargePart(self._text, start, end, kind))
        return end

    def _opens(self, start: int, character: bytes) -> bool:
        return self._text[start : start + 1] == character


def _refusal(request: bytes | None) -> bytes:
    error = json.dumps({"code": -32_000, "message": TOO_LONG})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request or b"null", error.encode())
