"""Start a server as a program and speak with it by lines, on its standard input and output.

The SDK's own client copies a long line anew with each piece of it that arrives, and takes lines of
any length; and each message passes two tasks on its way. Here it is written and read where it is
sent and awaited. Programs are started and ended as there: in a group of their own, with few
variables of ours, and asked to end by the end of their input before they are made to.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Final, TextIO, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import AsyncResource, ByteReceiveStream, ByteSendStream, Process
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from toolfold.catalog.call_slots import acquired
from toolfold.catalog.large import Spool
from toolfold.catalog.messagelines import LineSplitter, MessageTooLong, parse_message

_log = logging.getLogger(__name__)

_ProgramStreamT = TypeVar("_ProgramStreamT", bound="_ProgramStream")

_GRACE_S: Final = 2.0
_POLL_S: Final = 0.01
_GONE: Final = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def stdio_streams(
    program: StdioServerParameters,
    *,
    log: TextIO,
    lines: LineSplitter,
    fold: Callable[[Spool], bytes],
    on_too_long: Callable[[], None],
    on_gone: Callable[[], None],
) -> AsyncIterator[tuple["ProgramReader", "ProgramWriter"]]:
    """Run a program for the length of this context; yield the streams that the SDK's client uses.

    Of very long lines that is passed on which `fold` makes of them. One that is longer than `lines`
    allow is told to `on_too_long`, and ends the stream. A program that listens no more is told to
    `on_gone`: it may live on, and would never answer.

    Raises:
        OSError: It cannot be started.
    """
    process = await anyio.open_process(
        [program.command, *program.args],
        env=get_default_environment() | (program.env or {}),
        stderr=log,
        cwd=program.cwd,
        start_new_session=True,
    )
    # Nothing is awaited before this: a cancellation would leave the program running.
    try:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        yield (
            ProgramReader(process.stdout, lines, fold, on_too_long),
            ProgramWriter(process.stdin, on_gone),
        )
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


class _ProgramStream:
    """One of the two streams, closed by whoever uses it."""

    is_closed = False

    async def aclose(self) -> None:
        """Use it no more. The program itself is ended with the context that runs it."""
        self.is_closed = True

    async def __aenter__(self: _ProgramStreamT) -> _ProgramStreamT:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class ProgramReader(_ProgramStream):
    """What a program says, message by message."""

    def __init__(
        self,
        stdout: ByteReceiveStream,
        lines: LineSplitter,
        fold: Callable[[Spool], bytes],
        on_too_long: Callable[[], None],
    ) -> None:
        self._stdout = stdout
        self._lines = lines
        self._fold = fold
        self._on_too_long = on_too_long
        self._arrived: deque[bytes | Spool] = deque()
        self._is_over = False

    def __aiter__(self) -> "ProgramReader":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or why a line is none.

        Raises:
            EndOfStream: It says no more.
        """
        while not self._arrived:
            if self._is_over:
                raise anyio.EndOfStream
            await self._receive()
        line = self._arrived.popleft()
        if isinstance(line, Spool):
            line = await anyio.to_thread.run_sync(self._fold, line)
        return parse_message(line)

    async def _receive(self) -> None:
        try:
            self._arrived.extend(self._lines.feed(await self._stdout.receive()))
        except MessageTooLong:
            self._is_over = True
            self._on_too_long()
        except _GONE:
            self._is_over = True


class ProgramWriter(_ProgramStream):
    """What a program is told."""

    def __init__(self, stdin: ByteSendStream, on_gone: Callable[[], None]) -> None:
        self._stdin = stdin
        self._on_gone = on_gone
        self._turn = anyio.Lock()
        """Who waits for it, because the program does not listen, has written nothing yet."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message.

        Raises:
            BrokenResourceError: The program does not listen any more.
            ClosedResourceError: The stream was closed.
        """
        if self.is_closed:
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await acquired(self._turn)
        try:
            await self._stdin.send(text.encode("utf-8", "replace") + b"\n")
        except _GONE as error:
            self._on_gone()
            raise anyio.BrokenResourceError from error
        finally:
            self._turn.release()


async def _end(process: Process) -> None:
    """End a program, and leave nothing open."""
    assert process.stdin is not None  # noqa: S101
    assert process.stdout is not None  # noqa: S101
    async with anyio.create_task_group() as reading:
        reading.start_soon(_read_on, process.stdout)
        await _close(process.stdin)
        if not await _has_ended(process):
            _log.info("Process %d does not end with its input: it is made to.", process.pid)
        await terminate_posix_process_tree(process, _GRACE_S)
        if not await _has_ended(process):
            _log.warning("Process %d cannot be ended.", process.pid)
        reading.cancel_scope.cancel()
    await _close(process.stdout)
    _let_go(process)


async def _read_on(stdout: ByteReceiveStream) -> None:
    """Read what nobody listens to any more: a program that cannot write does not end."""
    with suppress(*_GONE):
        while True:
            await stdout.receive()


async def _has_ended(process: Process) -> bool:
    """Wait a while for the end. `wait` would also wait for those who inherited the pipes."""
    with anyio.move_on_after(_GRACE_S):
        while process.returncode is None:  # noqa: ASYNC110
            await anyio.sleep(_POLL_S)
    return process.returncode is not None


async def _close(pipe: AsyncResource) -> None:
    with suppress(*_GONE):
        await pipe.aclose()


def _let_go(process: Process) -> None:
    """Close what asyncio keeps open while somebody who left the group has a pipe of ours."""
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):  # up to Python 3.12 it signals a program of another user
            transport.close()
