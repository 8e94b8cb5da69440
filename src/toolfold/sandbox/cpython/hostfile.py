"""A file that the host keeps, as an object to read from and write to."""

import gc
import io
import os
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

from toolfold.sandbox.cpython.frames import SLICE_BYTES

_BUFFER_BYTES: Final = 1 << 18
_AT_END: Final = -1

Send = Callable[[str, str, str, int, int, bytes], Any]
"""What, path, target, offset, size and content of a question; returns an errno and an answer."""


class FileHost:
    """Asks the host, and has files written out when a program ends.

    The collector of garbage may close a file while a question is under way, so what it wants to
    ask is asked later.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_collecting = False
        """Whether the collector of garbage is at work."""
        self._later: list[tuple[Any, ...]] = []
        self._open: WeakSet[Any] = WeakSet()
        gc.callbacks.append(self._note)

    def ask(
        self,
        what: str,
        path: str,
        *,
        target: str = "",
        offset: int = 0,
        size: int = 0,
        content: bytes = b"",
    ) -> Any:
        """Return the host's answer.

        Raises:
            OSError: As the host says.
        """
        question = (what, path, target, offset, size, content)
        if self.is_collecting:
            self._later.append(question)
            return None
        while self._later:
            self._send(*self._later.pop(0))
        number, answer = self._send(*question)
        if number:
            raise OSError(number, answer, path)
        return answer

    def keep(self, file: Any) -> None:
        """Remember an open file."""
        self._open.add(file)

    def flush(self) -> None:
        """Write out what open files hold back, as Python does when it ends."""
        for file in list(self._open):
            if not file.closed and file.writable():
                file.flush()
        while self._later:
            self._send(*self._later.pop(0))

    def _note(self, phase: str, _info: Any) -> None:
        self.is_collecting = phase == "start"


class HostFile(io.RawIOBase):
    """Reads and writes slices at a position."""

    def __init__(self, host: FileHost, path: str, mode: str) -> None:
        self.name = path
        self.mode = mode
        self._host = host
        self._position = 0
        self._is_draft = False
        self._begin()

    def _begin(self) -> None:
        ask, path = self._host.ask, self.name
        action = (set("rwax") & set(self.mode)).pop()
        if action == "w":
            self._is_draft = "+" not in self.mode
            ask("begin", path)
            if not self._is_draft:  # who reads it meanwhile finds it in its place
                ask("finish", path)
        elif action == "x":
            ask("make", path)
        elif action == "a":
            try:
                self._check()
            except FileNotFoundError:
                ask("make", path)
        else:
            self._check()

    def _check(self) -> None:
        is_dir, *_ = self._host.ask("stat", self.name)
        if is_dir:
            self._host.ask("read", self.name)  # which says so

    def readable(self) -> bool:
        return "r" in self.mode or "+" in self.mode

    def writable(self) -> bool:
        return "r" not in self.mode or "+" in self.mode

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._may(self.readable(), "read")
        size = min(len(buffer), SLICE_BYTES)
        content = self._host.ask("read", self.name, offset=self._position, size=size)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def readall(self) -> bytes:
        self._may(self.readable(), "read")
        parts = []
        while part := self._host.ask("read", self.name, offset=self._position, size=SLICE_BYTES):
            parts.append(part)
            self._position += len(part)
        return b"".join(parts)

    def write(self, buffer: Any) -> int:
        self._may(self.writable(), "written")
        content = bytes(memoryview(buffer).cast("B")[:SLICE_BYTES])
        offset = _AT_END if "a" in self.mode else self._position
        self._host.ask("write", self.name, offset=offset, content=content)
        self._position += len(content)
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            offset += self._size()
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        self._position = offset
        return offset

    def tell(self) -> int:
        return self._position

    def truncate(self, size: int | None = None) -> int:
        self._may(self.writable(), "written")
        length = self._position if size is None else size
        self._host.ask("truncate", self.name, offset=length)
        return length

    def close(self) -> None:
        if self.closed or self._host.is_collecting:
            return  # the collector may close what is to be written to before what writes to it
        super().close()
        if self._is_draft:
            self._host.ask("finish", self.name)

    def _size(self) -> int:
        _, size, _ = self._host.ask("stat", self.name)
        return int(size)

    def _may(self, is_allowed: bool, what: str) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if not is_allowed:
            raise io.UnsupportedOperation(f"the file was not opened to be {what}")


def opened(  # noqa: PLR0913  # as Python has it
    host: FileHost,
    path: str,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,  # noqa: ARG001
    opener: Any = None,  # noqa: ARG001
) -> Any:
    """Open a file as `open` does."""
    kinds = set(mode)
    if kinds - set("rwaxbt+") or len(kinds & set("rwax")) != 1 or kinds >= {"b", "t"}:
        raise ValueError(f"invalid mode: {mode!r}")
    raw = HostFile(host, path, mode.replace("t", ""))
    if buffering == 0 and "b" in mode:
        return raw
    size = buffering if buffering > 1 else _BUFFER_BYTES
    stream: Any
    if "+" in mode:
        stream = io.BufferedRandom(raw, size)
    else:
        stream = io.BufferedReader(raw, size) if "r" in mode else io.BufferedWriter(raw, size)
    if "a" in mode:
        stream.seek(0, os.SEEK_END)
    if "b" not in mode:
        is_line_buffered = buffering == 1
        stream = io.TextIOWrapper(stream, encoding or "utf-8", errors, newline, is_line_buffered)
        stream.mode = mode
    host.keep(stream)
    return stream
