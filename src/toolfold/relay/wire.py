"""Lines of JSON between a client, a relay and a daemon."""

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIRE = 1
"""Which greeting relay and daemon speak. It changes only when an older one could not go on."""

_MODERN = "io.modelcontextprotocol/protocolVersion"


class Lines:
    """Cuts what arrives into lines."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk; return the lines that it completes, without their ends."""
        if b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        *lines, rest = b"".join((*self._parts, chunk)).split(b"\n")
        self._parts = [rest]
        return [line for line in lines if line.strip()]


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
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    named = meta.get(_MODERN) if isinstance(meta, dict) else None
    return named if isinstance(named, str) else None


def failure(request: "dict[str, Any]", reason: str, *, is_error: bool = True) -> "dict[str, Any]":
    """Return the answer to a request that failed: for a tool call one that the model reads."""
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
    if request.get("method") != "tools/call":
        return answer | {"error": {"code": -32603, "message": reason}}
    result: dict[str, Any] = {"content": [{"type": "text", "text": reason}], "isError": is_error}
    if protocol_of(request):
        result["resultType"] = "complete"
    return answer | {"result": result}
