"""MCP servers with one fault each: `python faulty.py MODE [ARGUMENT]`; the modes are below.

All but one do without the SDK, so that they fail as fast as a real one would.
"""

import base64
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from stdio import StdioServer, text, tool, words

NOISE = ["starting up...", "[info] loaded 3 plugins", "", '{"level": "debug", "msg": "ready"}', "{"]
ODD_SCHEMAS = {
    "good": {"type": "object", "properties": {"value": {}}, "required": ["value"]},
    "dangling_ref": {"type": "object", "properties": {"value": {"$ref": "#/$defs/nowhere"}}},
    "type_is_12": {"type": "object", "properties": {"value": {"type": 12}}},
}
BAD_SCHEMAS = {
    "not_an_object": {"type": "array", "items": {"type": "string"}},
    "no_type": {"properties": {"value": {"type": "string"}}},
    "properties_is_a_list": {"type": "object", "properties": ["value"]},
    "null_schema": None,
}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x25\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\1\0\0\0\x80"
).decode()


def exit_at_once() -> None:
    """End before the handshake, with a reason on stderr."""
    print("faulty: the licence key is missing", file=sys.stderr)
    sys.exit(3)


def hang() -> None:
    """Read the handshake, never answer it."""
    for _ in sys.stdin:
        pass


def garbage() -> None:
    """Print what is not JSON-RPC, then hang."""
    print(*NOISE, sep="\n", flush=True)
    hang()


def garbage_then_ok() -> None:
    """Print what is not JSON-RPC, then serve as `null.py` does."""
    print(*NOISE, sep="\n", flush=True)
    from null import serve

    serve()


def odd_schema() -> None:
    """List a good tool beside tools whose schemas are nonsense, yet pass the SDK's client."""
    serve_by_hand(ODD_SCHEMAS)


def bad_schema() -> None:
    """List the same beside schemas for which the SDK's client refuses the whole list."""
    serve_by_hand({**ODD_SCHEMAS, **BAD_SCHEMAS})


def slow(seconds: str) -> None:
    """Take a time for each call of `echo` (reads) and `put` (writes)."""

    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        time.sleep(float(seconds))
        return text(arguments.get("value"))

    tools = [tool("echo", "value", read_only=True), tool("put", "value", read_only=False)]
    StdioServer("slow", tools, call, is_concurrent=True).serve()


def dies() -> None:
    """Kill itself in the middle of a call of `die`."""

    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return text(os.getpid())

    tools = [tool("die", read_only=False), tool("pid", read_only=True)]
    StdioServer("dies", tools, call).serve()


def changes() -> None:
    """Gain a tool with each call of `add_tool(name)`, and say so in both protocol eras."""
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
    from sdk import serve_stdio, text, tool

    bus = InMemorySubscriptionBus()
    tools = [tool("add_tool", "name", read_only=False)]

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools))

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
        if params.name != "add_tool":
            return text("added")
        tools.append(tool((params.arguments or {})["name"], read_only=True))
        if ctx.protocol_version < "2026-07-28":
            await ctx.session.send_tool_list_changed()
        else:
            await bus.publish(ToolsListChanged())
        return text(len(tools))

    server: Server[Any] = Server(
        "faulty",
        version="1.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )
    serve_stdio(server)


def image() -> None:
    """Answer with blocks other than text: `picture`, `sound`, `blob`; `fail` is an error."""
    pdf = {
        "uri": "memo://report.pdf",
        "mimeType": "application/pdf",
        "blob": base64.b64encode(b"%PDF-1.4").decode(),
    }
    results: dict[str, dict[str, Any]] = {
        "picture": {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
        "sound": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
        "blob": {"content": [{"type": "resource", "resource": pdf}]},
        "fail": words("The printer is on fire.", is_error=True),
    }
    tools = [tool(name, read_only=True) for name in results]
    StdioServer("image", tools, lambda name, _arguments: results[name]).serve()


def endless() -> None:
    """Answer the call of `pour` with one line that never ends."""
    serve_by_hand({"pour": {"type": "object"}}, is_endless=True)


def serve_by_hand(schemas: dict[str, Any], *, is_endless: bool = False) -> None:
    """Serve 2025-11-25 without the SDK, which would refuse to send such schemas."""
    tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        params = request.get("params") or {}
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "faulty", "version": "1.0"},
            },
            "ping": {},
            "tools/list": {"tools": tools},
            "tools/call": {
                "content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]
            },
        }
        method = request["method"]
        while is_endless and method == "tools/call":
            sys.stdout.write("x" * 65536)
        answer: dict[str, Any] = {"error": {"code": -32601, "message": f"No method {method}"}}
        if method in results:
            answer = {"result": results[method]}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)


MODES: dict[str, Callable[..., None]] = {
    "exit": exit_at_once,
    "hang": hang,
    "garbage": garbage,
    "garbage-then-ok": garbage_then_ok,
    "bad-schema": bad_schema,
    "odd-schema": odd_schema,
    "slow": slow,
    "dies": dies,
    "changes": changes,
    "image": image,
    "endless": endless,
}

if __name__ == "__main__":
    MODES[sys.argv[1]](*sys.argv[2:])
