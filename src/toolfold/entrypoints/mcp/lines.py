"""MCP over a byte stream, a message a line, as over stdio."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias, TypeGuard

import anyio
import mcp_types as types
from anyio.abc import ByteStream
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
)

_log = logging.getLogger(__name__)

CallTool: TypeAlias = Callable[[str, Any], Awaitable[str]]
"""Calls a tool by its name with arguments, and returns its result as JSON: an object on one line.

Raises a `ToolfoldError` where there is none."""


class LineStream:
    """Lines from and to one peer."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._lines = LineReader()
        self._ready: list[bytes] = []
        self._sending = anyio.Lock()

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
            if self._lines.dropped or (held > at_most and not self._ready):
                raise anyio.EndOfStream
        return self._ready.pop(0)

    async def send(self, line: bytes) -> None:
        """Send a line that ends with its newline; a peer that is gone is told nothing."""
        async with self._sending:
            try:
                await self._stream.send(line)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


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
    """Serve one peer until it is gone. What it asked for and no longer waits for is cancelled.

    With `call`, tools are not called through the server: it takes a large answer apart and puts it
    together again more than once.
    """
    async with _messages(lines, in_flight, call) as (read, write):
        await server.run(read, write, initialization_options(server))


@asynccontextmanager
async def _messages(
    lines: LineStream, in_flight: InFlight, call: CallTool | None
) -> AsyncIterator[tuple[Any, Any]]:
    arrived, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, leaving = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        async with arrived:
            async for message in _arriving(lines):
                in_flight.see_in(message)
                if _is_call(message):
                    # Until it has this, a relay may ask another daemon without doing things twice.
                    await lines.send(encode({"received": message.id}))
                    if call is not None:
                        tasks.start_soon(_answer_call, message, call, lines, in_flight)
                        continue
                await arrived.send(SessionMessage(message))
            # The SDK would let requests in progress go on for a peer that is gone.
            tasks.cancel_scope.cancel()

    async def send() -> None:
        async with leaving:
            async for item in leaving:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await _send_answer(lines, getattr(item.message, "id", None), text.encode())
                in_flight.see_out(item.message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        yield read, write
        tasks.cancel_scope.cancel()


async def _arriving(lines: LineStream) -> AsyncIterator[types.JSONRPCMessage]:
    """Give what the peer sends until it is gone."""
    while True:
        try:
            line = await lines.receive()
        except anyio.EndOfStream:
            return
        message = await _parsed(line, lines)
        if message is not None:
            yield message


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
        reason = f"The answer has {len(text):,} bytes, and {MAX_ANSWER:,} are the most."
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
