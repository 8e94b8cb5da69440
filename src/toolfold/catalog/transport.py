"""How one MCP server is reached, and what can be said of it when it is not."""

import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from toolfold.catalog.large import TOO_LONG, LargeParts
from toolfold.catalog.messagelines import AS_IT_IS, LineSplitter, fold_body, sse_streams
from toolfold.catalog.sanitize import clean_message, plain
from toolfold.catalog.secrets import FilledServer, RedactedBody, RedactedLog, Redactor
from toolfold.catalog.stdio import ProgramCalls, stdio_streams
from toolfold.config.harmless import address, program_path
from toolfold.config.servers import ServerConfig
from toolfold.storage.files import BEFORE, CRASH, keep_log, make_private

_OVERLOADED = frozenset({429, 503})
_DEFAULT_RETRY_AFTER_S = 1.0
_MAX_RETRY_AFTER_S = 60.0
_LAST_WORDS_CHARS = 400
_READ_BACK_CHARS = 10_000
_ERROR_LINE = re.compile(r"\s*(Uncaught )?[\w.]{0,100}(Error|Exception)( \[\w+\])?: \S")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStart:
    """Where a server starts whose entry does not say."""

    directory: Path
    path: str
    """The PATH in which its command is found."""
    home: str = ""
    """The HOME of its user."""

    def environ(self) -> dict[str, str]:
        """Return what a server gets of its client's environment, whatever its entry says."""
        return {"PATH": self.path} | ({"HOME": self.home} if self.home else {})


class Transport:
    """What was noticed on the way to one server: its last words, its refusals, its end."""

    def __init__(
        self,
        server: FilledServer,
        start: ServerStart,
        log_file: Path,
        on_end: Callable[[], None],
        auth: httpx2.Auth | None,
        *,
        parts: LargeParts,
    ) -> None:
        self._config = server.config
        self._redactor = server.redactor
        self._parts = parts
        self._auth = auth
        self._start = start
        self._log_file = log_file
        self._on_end = on_end
        self.max_message_bytes = parts.sizes.line_bytes
        self.has_overflowed = False
        """Whether it ended because one message was longer than that."""
        self.busy_until = 0.0
        """Monotonic time before which an overloaded server asked not to be called."""
        self.refused_status: int | None = None
        """The status with which it last refused us, if it has not answered since."""
        self.left_out: list[str] = []
        """Which of the tools that it listed are not offered, and why."""
        self.calls: ProgramCalls | None = None
        """Calls tools without the SDK's session, where that can be."""
        self.noise: str | None = None
        """The first thing it said on its standard output that is not MCP."""
        self._has_died = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, Any]]:
        """Connect; yield the streams that the SDK's client reads and writes."""
        self._has_died = False
        try:
            async with AsyncExitStack() as stack:
                read, write = await self._enter(stack)
                self.calls = getattr(read, "calls", None)
                yield _WatchedStream(read, self._die, self.left_out.extend), write
        finally:
            if self._has_died:
                keep_log(self._log_file, CRASH)

    def _die(self) -> None:
        self._has_died = True
        self._on_end()

    async def _enter(self, stack: AsyncExitStack) -> tuple[Any, Any]:
        if self._config.transport == "stdio":
            log = stack.enter_context(self._open_log())
            return await stack.enter_async_context(self._program_streams(log))
        streams = http_streams(
            self._config,
            self._auth,
            self._see,
            parts=self._parts,
            on_too_long=self._overflow,
            redactor=self._redactor,
        )
        return await stack.enter_async_context(streams)

    def covered(self, words: str) -> str:
        """Return words about the server without the secrets that it was given."""
        return words if self._redactor is None else self._redactor.text(words)

    def _program_streams(
        self, log: TextIO | RedactedLog
    ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        config = self._config
        program = StdioServerParameters(
            command=config.command,
            args=list(config.args),
            env={**self._start.environ(), **dict(config.env)},
            cwd=config.cwd or self._start.directory,
            encoding_error_handler="replace",
        )
        if sys.platform == "win32":  # groups of processes are another matter there
            return stdio_client(program, errlog=cast("TextIO", log))
        sizes = self._parts.sizes
        return stdio_streams(
            program,
            log=log,
            lines=LineSplitter(
                sizes.line_bytes, sizes.result_bytes, self._parts.spool, self._redactor
            ),
            fold=self._parts.fold,
            on_too_long=self._overflow,
            on_gone=self._die,
        )

    @contextmanager
    def _open_log(self) -> Iterator[TextIO | RedactedLog]:
        """Open the log anew, closed to other users: what servers print may be secret."""
        directory = self._log_file.parent
        for each in (directory.parent, directory):
            make_private(each)
        keep_log(self._log_file, BEFORE)
        # To append, so that it can be cut while the program writes.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        descriptor = os.open(self._log_file, flags, 0o600)
        self._log_file.chmod(0o600)
        log = os.fdopen(descriptor, "w", encoding="utf-8")
        with log if self._redactor is None else RedactedLog(log, self._redactor) as opened:
            yield opened

    def _overflow(self) -> None:
        self.has_overflowed = True

    async def _see(self, response: httpx2.Response) -> None:
        if response.status_code in _OVERLOADED:
            wait = retry_after_s(response.headers.get("retry-after"), time.time())
            self.busy_until = max(self.busy_until, time.monotonic() + wait)
        if response.status_code in {401, 403}:
            self.refused_status = response.status_code
        elif response.is_success:
            self.refused_status = None

    def last_words(self) -> str:
        """Return of what the server wrote to its standard error the line that names an error.

        Without one, the last lines, whole ones.
        """
        try:
            text = self._log_file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""
        return _telling(plain(text[-_READ_BACK_CHARS:]))


def _telling(text: str) -> str:
    """Return the lines of a log that tell most; see `Transport.last_words`."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    errors = [line.strip() for line in lines if _ERROR_LINE.match(line)]
    if errors:
        return errors[-1][:_LAST_WORDS_CHARS]
    told = ""
    for line in reversed(lines):
        longer = f"{line}\n{told}" if told else line[:_LAST_WORDS_CHARS]
        if len(longer) > _LAST_WORDS_CHARS:
            break
        told = longer
    return told


@asynccontextmanager
async def http_streams(
    config: ServerConfig,
    auth: httpx2.Auth | None,
    see: Callable[[httpx2.Response], Awaitable[None]],
    *,
    parts: LargeParts,
    on_too_long: Callable[[], None] = lambda: None,
    redactor: Redactor | None = None,
) -> AsyncIterator[tuple[Any, Any]]:
    """Reach a server over HTTP, authorized by `auth`; every response is shown to `see`.

    Of long messages that is passed on which `parts` make of them. One that is longer than their
    sizes allow fails the request that it answers. Where all messages share one stream it ends that,
    and is told to `on_too_long`.
    """

    async def fold(response: httpx2.Response) -> None:
        if redactor is not None:
            response.stream = RedactedBody(response.stream, redactor)
        fold_body(response, parts)

    headers = httpx2.Headers(dict(config.headers))
    headers.update(AS_IT_IS)
    max_event_bytes = parts.sizes.message_bytes

    client = httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(30.0, read=None),  # calls have a clock of their own
        auth=auth,
        event_hooks={"response": [see, fold]},
    )
    async with client:
        connecting = (
            sse_streams(
                client, config.url, max_event_bytes=max_event_bytes, on_too_long=on_too_long
            )
            if config.transport == "sse"
            else streamable_http_client(
                config.url, http_client=client, max_sse_event_size=max_event_bytes
            )
        )
        async with connecting as streams:
            yield streams


def is_too_long(message: str) -> bool:
    """Whether an error that the SDK made out of a failed response says that it was too long."""
    if message == TOO_LONG:
        return True
    return "byte limit" in message and message.startswith(("SSE stream failed", "Failed to parse"))


def retry_after_s(header: str | None, now: float) -> float:
    """Read `Retry-After`: seconds, or a date. A wait is never longer than a minute."""
    if header is None:
        return _DEFAULT_RETRY_AFTER_S
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = parsedate_to_datetime(header).timestamp() - now
        except ValueError:
            return _DEFAULT_RETRY_AFTER_S
    return min(max(wait, 0.0), _MAX_RETRY_AFTER_S)


class _WatchedStream:
    """A read stream that tells when it has ended, so that a death is noticed at once.

    It also makes what enters fit to be shown, and says which listed tools are left out. And it
    writes tasks as the SDK can take them, which knows none.
    """

    def __init__(
        self, stream: Any, on_end: Callable[[], None], leave_out: Callable[[list[str]], None]
    ) -> None:
        self._stream = stream
        self._on_end = on_end
        self._leave_out = leave_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise
        message = getattr(item, "message", None)
        if left_out := clean_message(message):
            self._leave_out(left_out)
        result = getattr(message, "result", None)
        if isinstance(result, dict) and isinstance(result.get("task"), dict):
            mend_task(result)
        return item

    async def __aenter__(self) -> "_WatchedStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return bool(await self._stream.__aexit__(kind, error, trace))


def mend_task(result: dict[str, Any]) -> None:
    """Write a task of 2025-11-25 as the newer protocol does, where the answer to a call may be."""
    if "content" not in result:
        result.update(result.pop("task"), content=[])


@dataclass(frozen=True, slots=True)
class ConnectFailure:
    """What is known of one attempt to connect. Sentences leave out the server's name."""

    config: ServerConfig
    line: Transport
    directory: Path
    connect_timeout_s: float

    def of(self, error: BaseException) -> str | None:
        """Say what an error means; None for one that speaks for itself."""
        match leaf := _leaf(error):
            case TimeoutError():
                return self.of_silence()
            case FileNotFoundError() if not self.directory.is_dir():
                return f"its working directory {self.directory} does not exist."
            case FileNotFoundError() | PermissionError():
                command = program_path(self.config.command)
                return (
                    f"the command {command!r} was not found or may not be run. "
                    "Is it installed and on the PATH?"
                )
            case MCPError() if self._is_stdio and leaf.code == types.CONNECTION_CLOSED:
                words = self.line.last_words()
                return "the process exited during the handshake" + (f": {words}" if words else ".")
            case httpx2.TransportError():
                return f"{address(self.config.url)} cannot be reached: {leaf}"
        return None

    def of_silence(self) -> str:
        """Say what is known of a server that did not answer."""
        silence = f"it did not answer the handshake within {self.connect_timeout_s:g} s"
        if self.line.noise:
            return f"{silence}, and printed what is not MCP: {self.line.noise}"
        words = self.line.last_words() if self._is_stdio else ""
        return silence + (f". It said: {words}" if words else ".")

    @property
    def _is_stdio(self) -> bool:
        return self.config.transport == "stdio"


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    error = _leaf(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
