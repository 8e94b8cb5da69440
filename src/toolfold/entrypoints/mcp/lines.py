"""MCP over a byte stream, a message a line, as over stdio."""

import logging
import os
import select
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Self, TypeAlias, TypeGuard

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import ByteStream, SocketAttribute
from mcp.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from toolfold.errors import ToolfoldError
from toolfold.relay.wire import (
    MAX_ANSWER,
    MAX_LINE,
    LineReader,
    decode,
    encode,
    failure,
    key_of,
    protocol_of,
    refusal,
    write_all,
)

_log = logging.getLogger(__name__)

_CHUNK: Final = 65_536
_AT_ONCE: Final[int] = getattr(select, "PIPE_BUF", 0)  # some systems do not say

CallTool: TypeAlias = Callable[[str, Any], Awaitable[str]]
"""Calls a tool by its name with arguments, and returns its result as JSON: an object on one line.

Raises a `ToolfoldError` where there is none."""


class LineStream:
    """Lines from and to one peer."""

    def __init__(self, stream: ByteStream, *, refuses_long: bool = False) -> None:
        """Speak over a stream; a peer may be told of a line that is too long, and go on."""
        self._stream = stream
        self._refuses_long = refuses_long
        self._lines = LineReader()
        self._ready: list[bytes] = []
        self._sending = anyio.Lock(fast_acquire=True)
        self._send_nowait = _sending_at_once(stream)

    async def receive(self, *, at_most: int = MAX_LINE) -> bytes:
        """Return the next line.

        Raises:
            anyio.EndOfStream: The peer is gone, or sends a line that is too long.
        """
        held = 0
        while not self._ready:
            try:
                chunk = await self._stream.receive()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise anyio.EndOfStream from None
            held += len(chunk)
            self._ready = self._lines.feed(chunk)
            if self._refuses_long:
                await self._refuse_dropped()
            elif self._lines.dropped or (held > at_most and not self._ready):
                raise anyio.EndOfStream
        return self._ready.pop(0)

    async def _refuse_dropped(self) -> None:
        if self._lines.dropped:
            self._lines.dropped = 0
            words = f"A line may have at most {MAX_LINE:,} bytes. It was rejected."
            await self.send(encode(refusal(None, words)))

    async def send(self, line: bytes) -> None:
        """Send a line that ends with its newline; a peer that is gone is told nothing."""
        async with self._sending:
            try:
                sent = self._send_nowait(line)
                if sent < len(line):
                    await self._stream.send(line[sent:])
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                return


def _sending_at_once(stream: ByteStream) -> Callable[[bytes], int]:
    """Return what sends as much as there is room for: to have the loop turn first takes longer."""
    if isinstance(stream, StdioStream):
        return stream.send_nowait
    connection = stream.extra(SocketAttribute.raw_socket, None)  # noqa: S610  # no Django
    if not isinstance(connection, socket.socket):
        return lambda _line: 0

    def send(line: bytes) -> int:
        try:
            return connection.send(line)
        except BlockingIOError:
            return 0

    return send


class StdioStream(ByteStream):
    """Our standard input and output: while it is open, nobody else reads or writes them.

    They stay as they were opened: whoever else has them must not find that they do not block.
    """

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)

    async def receive(self, max_bytes: int = _CHUNK) -> bytes:
        """Return what has arrived."""
        try:
            await anyio.wait_readable(self._input)
            chunk = os.read(self._input, max_bytes)
        except (OSError, NotImplementedError):  # a file is read at once, and cannot be waited for
            chunk = await anyio.to_thread.run_sync(
                os.read, self._input, max_bytes, abandon_on_cancel=True
            )
        if not chunk:
            raise anyio.EndOfStream
        return chunk

    def send_nowait(self, item: bytes) -> int:
        """Send what is sure not to block, all or nothing; return how much that was."""
        if len(item) > _AT_ONCE:
            return 0
        _, ready, _ = select.select((), (self._output,), (), 0)
        return os.write(self._output, item) if ready else 0

    async def send(self, item: bytes) -> None:
        """Send all of it, beside the event loop: it lasts until the peer reads it."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(write_all, self._output, item)

    async def send_eof(self) -> None:
        """Leave the output open: it ends with the process."""

    async def aclose(self) -> None:
        """Let others have input and output again."""
        os.dup2(self._input, 0)
        os.dup2(self._output, 1)
        os.close(self._input)
        os.close(self._output)


class InFlight:
    """The requests of one peer that are not answered."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._changed = anyio.Event()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._keys)

    @contextmanager
    def counting(self, key: str) -> Iterator[None]:
        """Count a request for the length of this context."""
        self._keys.add(key)
        try:
            yield
        finally:
            self._forget(key)

    def see_in(self, message: Any) -> None:
        """Note what came from the peer."""
        method = getattr(message, "method", "")
        if isinstance(message, types.JSONRPCRequest) and method != "subscriptions/listen":
            self._keys.add(key_of(message.id))
        elif method == "notifications/cancelled":
            self._forget(key_of((message.params or {}).get("requestId")))

    def see_out(self, message: Any) -> None:
        """Note what was sent to the peer."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._forget(key_of(message.id))

    def _forget(self, key: str) -> None:
        self._keys.discard(key)
        self._changed.set()
        self._changed = anyio.Event()

    async def none(self) -> None:
        """Wait until there is none."""
        while self._keys:
            await self._changed.wait()


def initialization_options(server: Server[Any]) -> InitializationOptions:
    """Return what our handshake says: a relay may announce that a list has changed."""
    return server.create_initialization_options(
        NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    )


async def serve_lines(
    server: Server[Any],
    lines: LineStream,
    in_flight: InFlight,
    *,
    call: CallTool | None = None,
) -> None:
    """Serve one relay until it is gone. What it asked for and no longer waits for is cancelled.

    With `call`, tools are not called through the server: it takes a large answer apart and puts it
    together again more than once.
    """
    options = initialization_options(server)
    async with anyio.create_task_group() as tasks:
        reader = _MessageReader(lines, in_flight)

        def take_call(request: types.JSONRPCRequest, call: CallTool) -> None:
            tasks.start_soon(_answer_call, request, call, lines, in_flight)

        reader.is_relay = True
        reader.take_call = call and partial(take_call, call=call)
        await server.run(reader, _MessageWriter(lines, in_flight), options)
        tasks.cancel_scope.cancel()


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes our standard input."""
    async with StdioStream() as stream:
        lines, in_flight = LineStream(stream, refuses_long=True), InFlight()
        reader, writer = _MessageReader(lines, in_flight), _MessageWriter(lines, in_flight)
        await server.run(reader, writer, server.create_initialization_options())


class _MessageStream:
    """Messages from or to one peer, read and written where they are awaited and sent."""

    def __init__(self, lines: LineStream, in_flight: InFlight) -> None:
        self._lines = lines
        self._in_flight = in_flight

    async def aclose(self) -> None:
        """Leave the connection to whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


class _MessageReader(_MessageStream):
    """What a peer sends."""

    is_relay = False
    """Whether it is told of each call that has arrived."""
    take_call: Callable[[types.JSONRPCRequest], None] | None = None
    """Answers calls of tools in the place of the server."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

        Raises:
            EndOfStream: The peer is gone.
        """
        while True:
            message = await _parsed(await self._lines.receive(), self._lines)
            if message is None:
                continue
            self._in_flight.see_in(message)
            if _is_call(message):
                if self.is_relay:
                    # Until it has this, it may ask another daemon without doing things twice.
                    await self._lines.send(encode({"received": message.id}))
                if self.take_call is not None:
                    self.take_call(message)
                    continue
            return SessionMessage(message)


class _MessageWriter(_MessageStream):
    """What a peer is sent."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message; not that we end, since the relay knows what became of the request."""
        message = item.message
        if (
            isinstance(message, types.JSONRPCError)
            and message.error.code == types.CONNECTION_CLOSED
        ):
            return
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await _send_answer(self._lines, getattr(item.message, "id", None), text.encode())
        self._in_flight.see_out(item.message)


def _is_call(message: types.JSONRPCMessage) -> TypeGuard[types.JSONRPCRequest]:
    return isinstance(message, types.JSONRPCRequest) and message.method == "tools/call"


async def _parsed(line: bytes, lines: LineStream) -> types.JSONRPCMessage | None:
    """Return the message in a line; where there is none, the peer is told."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        await lines.send(encode(_worded(line, error)))
        return None


async def _answer_call(
    request: types.JSONRPCRequest, call: CallTool, lines: LineStream, in_flight: InFlight
) -> None:
    """Answer one call of a tool with what is JSON already."""
    params = request.params or {}
    asked = {"method": request.method, "id": request.id, "params": params}
    try:
        result = await call(str(params.get("name")), params.get("arguments"))
        # Protocols without a handshake want to know that there is no more to come.
        kind = '{"resultType":"complete",' if protocol_of(asked) else "{"
        text = f'{{"jsonrpc":"2.0","id":{key_of(request.id)},"result":{kind}{result[1:]}}}'
        await _send_answer(lines, request.id, text.encode())
    except ToolfoldError as error:
        await lines.send(encode(failure(asked, str(error))))
    finally:
        in_flight.see_out(types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result={}))


async def _send_answer(lines: LineStream, request_id: object, text: bytes) -> None:
    """Send a line; in place of one that the peer would not take, say so."""
    if len(text) > MAX_ANSWER:
        reason = f"The answer has {len(text):,} bytes, and {MAX_ANSWER:,} is the limit."
        text = encode(
            {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32603, "message": reason}}
        )[:-1]
    await lines.send(text + b"\n")


def _worded(line: bytes, error: ValidationError) -> dict[str, Any]:
    """Return an answer to what is not a message, so that nobody waits for one."""
    first = error.errors(include_url=False, include_input=False)[0]
    reason = f"This request is not valid: {first['msg']}."
    message = decode(line) or {}
    if "method" in message and "id" in message:
        return failure(message, reason)
    return refusal(None, reason)
