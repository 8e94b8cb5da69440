"""Start a server as a program and speak with it by lines, on its standard input and output.

The SDK's own client copies a long line anew with each piece of it that arrives, and takes lines of
any length. Programs are started and ended here as there: in a group of their own, with few
variables of ours, and asked to end by the end of their input before they are made to.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TextIO

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import AsyncResource, Process
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from toolfold.catalog.large import Spool
from toolfold.catalog.messagelines import Lines, TooLong, parse_message

_log = logging.getLogger(__name__)

_FLUSH_S: Final = 0.5
_GRACE_S: Final = 2.0
_POLL_S: Final = 0.01
_GONE: Final = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def stdio_streams(
    program: StdioServerParameters,
    *,
    log: TextIO,
    lines: Lines,
    fold: Callable[[Spool], bytes],
    on_too_long: Callable[[], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """Run a program for the length of this context; yield the streams that the SDK's client uses.

    Of very long lines that is passed on which `fold` makes of them. One that is longer than `lines`
    allow is told to `on_too_long`, and ends the stream.

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
    # Nothing is awaited until the tasks are there: a cancellation would leave the program running.
    talk = _Talk(process, lines, fold, on_too_long)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.hear)
        tasks.start_soon(talk.tell)
        try:
            yield talk.heard, talk.told
        finally:
            with anyio.CancelScope(shield=True):
                await talk.end()
            tasks.cancel_scope.cancel()


class _Talk:
    """What passes between the session and one program."""

    def __init__(
        self,
        process: Process,
        lines: Lines,
        fold: Callable[[Spool], bytes],
        on_too_long: Callable[[], None],
    ) -> None:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._lines = lines
        self._fold = fold
        self._on_too_long = on_too_long
        self._hearing, self.heard = anyio.create_memory_object_stream[SessionMessage | Exception]()
        self.told, self._telling = anyio.create_memory_object_stream[SessionMessage]()
        self._is_told = anyio.Event()

    async def hear(self) -> None:
        """Pass on what the program says. Once nobody listens, read on, or it could not end."""
        try:
            async with self._hearing:
                with suppress(*_GONE):
                    await self._pass_on()
        finally:
            with anyio.CancelScope(shield=True), suppress(*_GONE):
                while True:
                    await self._stdout.receive()

    async def _pass_on(self) -> None:
        try:
            while True:
                for line in self._lines.feed(await self._stdout.receive()):
                    if isinstance(line, Spool):
                        line = await anyio.to_thread.run_sync(self._fold, line)
                    await self._hearing.send(parse_message(line))
        except TooLong:
            self._on_too_long()

    async def tell(self) -> None:
        """Send what the session says."""
        try:
            async with self._telling:
                async for each in self._telling:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._stdin.send(text.encode("utf-8", "replace") + b"\n")
        except _GONE:
            await self._hearing.aclose()  # it may live on, and would never answer
        finally:
            self._is_told.set()

    async def end(self) -> None:
        """Send what is still to be sent, end the program, and leave nothing open."""
        self.heard.close()
        self.told.close()
        with anyio.move_on_after(_FLUSH_S):
            await self._is_told.wait()
        await _close(self._stdin)
        if not await _has_ended(self._process):
            _log.info("Process %d does not end with its input: it is made to.", self._process.pid)
        await terminate_posix_process_tree(self._process, _GRACE_S)
        if not await _has_ended(self._process):
            _log.warning("Process %d cannot be ended.", self._process.pid)
        await _close(self._stdout)
        _let_go(self._process)
        self._hearing.close()
        self._telling.close()
        await anyio.lowlevel.checkpoint()  # both tasks see that, and end by themselves


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
