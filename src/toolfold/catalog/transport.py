"""How one MCP server is reached, and what can be said of it when it is not."""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from toolfold.catalog.bodies import AS_IT_IS, fold_body
from toolfold.catalog.large import TOO_LONG, LargeParts
from toolfold.catalog.messagelines import LineSplitter
from toolfold.catalog.sse import sse_streams
from toolfold.catalog.stdio import stdio_streams
from toolfold.config.servers import ServerConfig
from toolfold.storage.files import make_private

_OVERLOADED = frozenset({429, 503})
_DEFAULT_RETRY_AFTER_S = 1.0
_MAX_RETRY_AFTER_S = 60.0
_LAST_WORDS_CHARS = 400


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
        config: ServerConfig,
        start: ServerStart,
        log_file: Path,
        on_end: Callable[[], None],
        auth: httpx2.Auth | None,
        *,
        parts: LargeParts,
    ) -> None:
        self._config = config
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
        self.noise: str | None = None
        """The first thing it said on its standard output that is not MCP."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, Any]]:
        """Connect; yield the streams that the SDK's client reads and writes."""
        async with AsyncExitStack() as stack:
            read, write = await self._enter(stack)
            yield _WatchedStream(read, self._on_end), write

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
        )
        return await stack.enter_async_context(streams)

    def _program_streams(self, log: TextIO) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        config = self._config
        program = StdioServerParameters(
            command=config.command,
            args=list(config.args),
            env={**self._start.environ(), **dict(config.env)},
            cwd=config.cwd or self._start.directory,
            encoding_error_handler="replace",
        )
        if sys.platform == "win32":  # groups of processes are another matter there
            return stdio_client(program, errlog=log)
        sizes = self._parts.sizes
        return stdio_streams(
            program,
            log=log,
            lines=LineSplitter(sizes.line_bytes, sizes.result_bytes, self._parts.spool),
            fold=self._parts.fold,
            on_too_long=self._overflow,
            on_gone=self._on_end,
        )

    def _open_log(self) -> TextIO:
        """Open the log anew, closed to other users: what servers print may be secret."""
        directory = self._log_file.parent
        for each in (directory.parent, directory):
            make_private(each)
        descriptor = os.open(self._log_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._log_file.chmod(0o600)
        return os.fdopen(descriptor, "w", encoding="utf-8")

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
        """Return the end of what the server wrote to its standard error."""
        try:
            text = self._log_file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""
        return text[-_LAST_WORDS_CHARS:]


@asynccontextmanager
async def http_streams(
    config: ServerConfig,
    auth: httpx2.Auth | None,
    see: Callable[[httpx2.Response], Awaitable[None]],
    *,
    parts: LargeParts,
    on_too_long: Callable[[], None] = lambda: None,
) -> AsyncIterator[tuple[Any, Any]]:
    """Reach a server over HTTP, authorized by `auth`; every response is shown to `see`.

    Of long messages that is passed on which `parts` make of them. One that is longer than their
    sizes allow fails the request that it answers. Where all messages share one stream it ends that,
    and is told to `on_too_long`.
    """

    async def fold(response: httpx2.Response) -> None:
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

    It also mends listings on their way in: the SDK would refuse a whole listing for the sake of one
    tool whose schema is not an object.
    """

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

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
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            # Before 2026 a tool's output had to be an object; results had no type of their own.
            mend_listing(result["tools"], any_output="resultType" in result)
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


def mend_listing(tools: list[Any], *, any_output: bool) -> None:
    """Keep of each schema what a schema of arguments can hold, so that no tool is refused."""
    for tool in tools:
        if isinstance(tool, dict):
            tool["inputSchema"] = _mended(tool.get("inputSchema"))
            output = tool.get("outputSchema")
            if not isinstance(output, dict) or not (any_output or output.get("type") == "object"):
                tool.pop("outputSchema", None)


def _mended(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        return {"type": "object"}
    mended = {**schema, "type": "object"}
    if "properties" in mended and not _are_schemas(mended["properties"]):
        del mended["properties"]
    required = mended.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        del mended["required"]
    return mended


def _are_schemas(properties: Any) -> bool:
    return isinstance(properties, dict) and all(
        isinstance(schema, dict | bool) for schema in properties.values()
    )
