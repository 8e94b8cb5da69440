"""Lines of JSON between a client, a relay and a daemon."""

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIRE = 1
"""Which greeting relay and daemon speak. It changes only when an older one could not go on."""

MAX_LINE = 16 * 1024 * 1024
"""Of what is asked."""

MAX_ANSWER = 64 * 1024 * 1024
INVALID_REQUEST = -32600

_LONG = 65_536
_ANSWER = b'{"jsonrpc":"2.0","id":'
_MAX_ID = 40

_MODERN = "io.modelcontextprotocol/protocolVersion"


class LineReader:
    """Cuts what arrives into lines. One that is too long is dropped, and counted."""

    def __init__(self, longest: int = MAX_LINE) -> None:
        self.dropped = 0
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk; return the lines that it completes, without their ends."""
        *ended, rest = chunk.split(b"\n")
        lines = [line for line in map(self._complete, ended) if line.strip()]
        self._keep(rest)
        return lines

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _complete(self, part: bytes) -> bytes:
        self._keep(part)
        line, is_too_long = b"".join(self._parts), self._size > self._longest
        self._parts, self._size = [], 0
        self.dropped += is_too_long
        return line


def encode(message: "dict[str, Any]") -> bytes:
    """Return a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> "dict[str, Any] | None":
    """Return the object that a line holds, or None."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def peek(line: bytes) -> "dict[str, Any] | None":
    """Return whose answer a line is; of a long one without reading the rest of it."""
    if len(line) > _LONG and line.startswith(_ANSWER):
        end = line.find(b',"result":', len(_ANSWER), len(_ANSWER) + _MAX_ID)
        identity = line[len(_ANSWER) : end]
        if end > 0 and identity.isdigit():
            return {"id": int(identity), "result": {}}
    return decode(line)


def key_of(request_id: object) -> str:
    """Return a key for an id: 1 and "1" are different requests."""
    return json.dumps(request_id)


def write_all(descriptor: int, content: bytes) -> None:
    """Write everything, however often that takes."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def protocol_of(message: "dict[str, Any]") -> str | None:
    """Return the protocol that a request of the stateless kind names; None for the older kind."""
    meta = (message.get("params") or {}).get("_meta")
    named = meta.get(_MODERN) if isinstance(meta, dict) else None
    return named if isinstance(named, str) else None


def what_is_wrong(message: "dict[str, Any]") -> str | None:
    """Say what a message may not be like; None for one that can be passed on."""
    if not isinstance(message.get("method", ""), str):
        return "`method` must be a string."
    if not isinstance(message.get("params", {}), dict):
        return "`params` must be an object."
    request_id = message.get("id", 0)
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        return "`id` must be a string or an integer."
    return None


def refusal(request_id: object, reason: str) -> "dict[str, Any]":
    """Return the answer to something that is not a request."""
    error = {"code": INVALID_REQUEST, "message": reason}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def failure(request: "dict[str, Any]", reason: str, *, is_error: bool = True) -> "dict[str, Any]":
    """Return the answer to a request that failed: for a tool call one that the model reads."""
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
    if request.get("method") != "tools/call":
        return answer | {"error": {"code": -32603, "message": reason}}
    result: dict[str, Any] = {"content": [{"type": "text", "text": reason}], "isError": is_error}
    if protocol_of(request):
        result["resultType"] = "complete"
    return answer | {"result": result}
