"""Start a server as a program and speak with it by lines, on its standard input and output.

The SDK's own client copies a long line anew with each piece of it that arrives, and takes lines of
any length; and each message passes two tasks on its way. Here it is written and read where it is
sent and awaited. Programs are started and ended as there: in a group of their own, with few
variables of ours, and asked to end by the end of their input before they are made to.
"""

import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from types import TracebackType
from typing import Any, Final, TextIO, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import mcp_types as types
from anyio.abc import AsyncResource, ByteReceiveStream, ByteSendStream, Process
from mcp import MCPError
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from toolfold.catalog.large import Spool
from toolfold.catalog.messagelines import (
    LineSplitter,
    MessageTooLong,
    parse_message,
    read_json,
)
from toolfold.catalog.sanitize import clean_result, plain_failure
from toolfold.catalog.secrets import RedactedLog
from toolfold.catalog.upstream_request import acquired, called
from toolfold.jsontypes import JsonObject

_log = logging.getLogger(__name__)

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Told how much is done, of how much, and a note."""

_ProgramStreamT = TypeVar("_ProgramStreamT", bound="_ProgramStream")

_GRACE_S: Final = 2.0
_POLL_S: Final = 0.01
_FIRST_NUMBER: Final = 1_000_000_000
_MAX_DIGITS: Final = 20
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_GONE: Final = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def stdio_streams(
    program: StdioServerParameters,
    *,
    log: TextIO | RedactedLog,
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
        stderr=log.fileno(),
        cwd=program.cwd,
        start_new_session=True,
    )
    # Nothing is awaited before this: a cancellation would leave the program running.
    try:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        writer = ProgramWriter(process.stdin, on_gone)
        calls = ProgramCalls(writer)
        yield ProgramReader(process.stdout, lines, fold, on_too_long, calls), writer
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
        calls: "ProgramCalls",
    ) -> None:
        self.calls = calls
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
        """Return the next message that answers no call of ours, or why a line is none.

        Raises:
            EndOfStream: It says no more.
        """
        while True:
            while not self._arrived:
                if self._is_over:
                    self.calls.end()
                    raise anyio.EndOfStream
                await self._receive()
            line = self._arrived.popleft()
            if isinstance(line, Spool):
                line = await anyio.to_thread.run_sync(self._fold, line)
            if not await self.calls.take(line):
                return parse_message(line)

    async def aclose(self) -> None:
        """Read no more: no call is answered any more."""
        await super().aclose()
        self.calls.end()

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
        self._pipe = getattr(getattr(stdin, "_stream", None), "transport", None)
        """What writes at once: anyio has the loop turn before it returns."""
        self._on_gone = on_gone
        self._turn = anyio.Lock()
        """Who waits for it, because the program does not listen, has written nothing yet."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message.

        Raises:
            BrokenResourceError: The program does not listen any more.
            ClosedResourceError: The stream was closed.
        """
        await self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def write(self, text: str) -> None:
        """Send a message that is JSON already; raises as `send` does."""
        if self.is_closed:
            raise anyio.ClosedResourceError
        await acquired(self._turn)
        try:
            await self._write(text.encode("utf-8", "replace") + b"\n")
        except _GONE as error:
            self._on_gone()
            raise anyio.BrokenResourceError from error
        finally:
            self._turn.release()

    async def _write(self, line: bytes) -> None:
        if self._pipe is None or self._pipe.get_write_buffer_size():
            await self._stdin.send(line)
            return
        if not self._pipe.is_closing():
            self._pipe.write(line)
        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        if self._pipe.get_write_buffer_size():
            await self._stdin.send(b"")  # waits until the program has listened


class ProgramCalls:
    """Calls of tools over the streams of a program, past the SDK's session.

    That makes and checks each message twice, and hands it from task to task: more work than all
    that we do for a call. Its requests have small numbers, these large ones.
    """

    def __init__(self, writer: ProgramWriter) -> None:
        self._writer = writer
        self._numbers = count(_FIRST_NUMBER)
        self._waiting: dict[int, _AwaitedAnswer] = {}
        self._is_over = False

    async def call(self, params: JsonObject, hear: OnProgress | None) -> types.CallToolResult:
        """Call a tool; what the program says of its progress meanwhile goes to `hear`.

        Raises:
            MCPError: It answered with an error, or is gone.
            ValidationError: It answered with what is no result.
        """
        if self._is_over:
            raise _closed()
        number, awaited = next(self._numbers), _AwaitedAnswer(hear)
        if hear is not None:
            meta: Any = params.get("_meta") or {}
            params = {**params, "_meta": {**meta, "progressToken": number}}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        self._waiting[number] = awaited
        try:
            await self._writer.write(_encode(message))
            await awaited.arrived.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise _closed() from None
        except anyio.get_cancelled_exc_class():
            await self._cancel(number)
            raise
        finally:
            del self._waiting[number]
        return awaited.result()

    async def _cancel(self, number: int) -> None:
        """Tell the program that nobody waits any more; a moment must be enough for that."""
        about = {"requestId": number, "reason": "caller cancelled"}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": about}
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            with anyio.move_on_after(_GRACE_S, shield=True):
                await self._writer.write(_encode(note))

    async def take(self, line: bytes) -> bool:
        """Take what is about a call of these, if a line is."""
        if not self._waiting:
            return False
        match message := read_json(line):
            case {"method": "notifications/progress", "params": {"progressToken": token} as about}:
                awaited = self._waiting.get(_number(token))
                return awaited is not None and await awaited.heard(about)
            case {"method": _}:
                return False
            case {"id": number, "result": _} | {"id": number, "error": _}:
                awaited = self._waiting.get(_number(number))
                if awaited is None:
                    return False
                awaited.message = message
                awaited.arrived.set()
                return True
        return False

    def end(self) -> None:
        """Answer those who wait: nobody else will."""
        self._is_over = True
        for awaited in self._waiting.values():
            awaited.arrived.set()


class _AwaitedAnswer:
    """The answer to one call."""

    def __init__(self, hear: OnProgress | None) -> None:
        self.arrived = anyio.Event()
        self.message: dict[str, Any] | None = None
        self._hear = hear

    async def heard(self, about: Mapping[Any, Any]) -> bool:
        """Take what is said of the progress; tell whether it is sound."""
        match about:
            case {"progress": int() | float() as progress}:
                total, note = about.get("total"), about.get("message")
                total = total if isinstance(total, int | float) else None
                try:
                    if self._hear is not None:
                        await self._hear(progress, total, note if isinstance(note, str) else None)
                except Exception:  # noqa: BLE001  # others read from the same stream
                    _log.exception("What a server said of its progress was lost.")
                return True
        return False

    def result(self) -> types.CallToolResult:
        """Return it. Raises as `ProgramCalls.call`."""
        if self.message is None:
            raise _closed()
        if "error" not in self.message:
            result = self.message["result"]
            if isinstance(result, dict):
                clean_result(result)
            return called(result)
        error = self.message["error"]
        about = error if isinstance(error, dict) else {}
        code, words = about.get("code"), about.get("message")
        raise MCPError(
            code if isinstance(code, int) else types.INTERNAL_ERROR,
            plain_failure(words if isinstance(words, str) else str(error)),
            about.get("data"),
        )


def _number(request_id: object) -> int:
    """Return an id as we gave it: some programs make a text of it."""
    if isinstance(request_id, str) and request_id.isdecimal():
        return int(request_id[:_MAX_DIGITS])
    return request_id if isinstance(request_id, int) else 0


def _closed() -> MCPError:
    return MCPError(types.CONNECTION_CLOSED, "Connection closed")


async def _end(process: Process) -> None:
    """End a program, and leave nothing open."""
    assert process.stdin is not None  # noqa: S101
    assert process.stdout is not None  # noqa: S101
    async with anyio.create_task_group() as reading:
        reading.start_soon(_read_on, process.stdout)
        await _close(process.stdin)
        if not await _has_ended(process):
            _log.info(
                "Process %d did not exit when its input was closed: it is terminated.", process.pid
            )
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
