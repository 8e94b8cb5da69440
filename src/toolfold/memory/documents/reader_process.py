"""Have files read by a process of its own, and start another when it dies or hangs."""

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, get_args

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from toolfold.embedding import TOKENIZER
from toolfold.errors import StoreError
from toolfold.memory.documents.chunks import MAX_CHARS, Chunk
from toolfold.memory.documents.kinds import (
    MAX_TEXT_CHARS,
    DocumentContent,
    DocumentKind,
    Unreadable,
    readable,
)

TIMEOUT_S: Final = 180.0
"""For one file."""

# As JSON, a character takes up to six bytes; every chunk says its headings again.
_MAX_ANSWER_BYTES: Final = 12 * MAX_TEXT_CHARS
_MAX_REASON_CHARS: Final = 1_000
_ENDING_S: Final = 1.0
_GONE: Final = (
    *(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream),
    *(anyio.IncompleteRead, anyio.DelimiterNotFound),
)
# Nothing of the environment goes along. Where modules are is told by argument, not by variable.
_START: Final = (
    "import sys; [file, *sys.path] = sys.argv[1:]; sys.argv[1:] = [file]; "
    "from toolfold.memory.documents.child import main; main()"
)


class ReaderProcess:
    """Reads files one after the other. Not started before the first."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._process: anyio.abc.Process | None = None
        self._answers: BufferedByteReceiveStream | None = None

    @classmethod
    @asynccontextmanager
    async def running(cls, *, timeout_s: float = TIMEOUT_S) -> "AsyncIterator[ReaderProcess]":
        """Give one for the length of this context."""
        reading = cls(timeout_s=timeout_s)
        try:
            yield reading
        finally:
            with anyio.CancelScope(shield=True):
                await reading._kill()

    async def read(
        self, content: bytes, name: str
    ) -> "tuple[DocumentKind, DocumentContent, list[Chunk]]":
        """Return what kind of file it is, what is known of it (no blocks), and its chunks.

        Raises:
            Unreadable: Nothing can be read from it, or reading it took too long or crashed.
        """
        try:
            with anyio.fail_after(self._timeout_s):
                answer = await self._ask(content, name)
        except TimeoutError as error:
            await self._kill()
            raise Unreadable(f"Reading it took longer than {self._timeout_s:g} s.") from error
        except _GONE as error:
            reason = await self._end()
            raise Unreadable(f"Reading it failed: the process that did so {reason}.") from error
        return _checked(answer)

    async def _ask(self, content: bytes, name: str) -> bytes:
        if self._process is None or self._process.returncode is not None:
            await self._kill()
            await self._start()
        process, answers = self._process, self._answers
        assert process is not None  # noqa: S101  # it is started, and has pipes
        assert process.stdin is not None  # noqa: S101
        assert answers is not None  # noqa: S101
        head = json.dumps({"name": name, "bytes": len(content)}).encode() + b"\n"
        await process.stdin.send(head + content)
        return await answers.receive_until(b"\n", _MAX_ANSWER_BYTES)

    async def _start(self) -> None:
        if not TOKENIZER.is_file():
            raise StoreError(f"The embedding model's {TOKENIZER} is missing. Reinstall toolfold.")
        command = [sys.executable, "-I", "-S", "-c", _START, str(TOKENIZER), *sys.path]
        self._process = await anyio.open_process(
            command, stderr=subprocess.DEVNULL, env={"TOKENIZERS_PARALLELISM": "false"}
        )
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        self._answers = BufferedByteReceiveStream(self._process.stdout)

    async def _end(self) -> str:
        """Say how the process ended; where its answers have ended, it is about to as well."""
        code = None
        if self._process is not None:
            with anyio.move_on_after(_ENDING_S):
                code = await self._process.wait()
        await self._kill()
        return _ending(code)

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()


def _ending(code: int | None) -> str:
    if code is None:
        return "did not answer as it should"
    if code == -signal.SIGXCPU:
        return "used too much processor time"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with {code}"


def _checked(answer: bytes) -> tuple[DocumentKind, DocumentContent, list[Chunk]]:
    """Return what the process answered. What it read may have taken it over, so nothing is trusted.

    Raises:
        Unreadable: That is what it answered, or it answered something else than it should.
    """
    try:
        found = json.loads(answer)
        if "unreadable" in found:
            raise Unreadable(str(found["unreadable"])[:_MAX_REASON_CHARS])
        kind, pages = found["kind"], found["pages"]
        chunks = [
            Chunk(_text(text), _texts(path), _page(page)) for text, path, page in found["chunks"]
        ]
        if kind not in get_args(DocumentKind) or not chunks:
            raise ValueError(kind)
        return kind, DocumentContent([], _text(found["title"]), _page(pages)), chunks
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Unreadable("Reading it failed: what came back was no text.") from error


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_CHARS or readable(value) != value:
        raise ValueError(value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(each) for each in value)


def _page(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or not 0 < value < 2**31):
        raise ValueError(value)
    return value
