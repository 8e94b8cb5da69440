"""Serve MCP over stdin and stdout with the standard library alone, in both eras of the protocol.

A server that imports the SDK takes a second of a processor to start, this one some milliseconds.
"""

import json
import sys
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

Object = dict[str, Any]
Call = Callable[[str, Object], Object]
"""From the name of a tool and its arguments to the result; a ValueError is an error of the tool."""


def tool(name: str, *parameters: str, read_only: bool) -> Object:
    """Describe a tool whose parameters are all required and take any value."""
    schema = {
        "type": "object",
        "properties": {parameter: {} for parameter in parameters},
        "required": list(parameters),
    }
    return {
        "name": name,
        "description": f"The {name} tool of a test server.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": read_only},
    }


def text(value: object) -> Object:
    """Answer with `value` as JSON in one text block."""
    return words(json.dumps(value))


def words(value: str, *, is_error: bool = False) -> Object:
    """Answer with `value` as it is in one text block."""
    return {"content": [{"type": "text", "text": value}], "isError": is_error}


class StdioServer:
    """A server of tools; the list may grow while it serves."""

    def __init__(
        self,
        name: str,
        tools: list[Object],
        call: Call,
        *,
        page_size: int | None = None,
        is_concurrent: bool = False,
    ) -> None:
        self._about = {"name": name, "version": "1.0"}
        self._tools = tools
        self._call = call
        self._page_size = page_size
        self._is_concurrent = is_concurrent
        self._writing = Lock()
        self._cancelled: set[object] = set()

    def serve(self) -> None:
        """Answer until the client leaves. Calls run side by side where that was asked for."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if message.get("method") == "notifications/cancelled":
                self._cancelled.add(message["params"]["requestId"])
            elif "id" not in message:
                continue
            elif self._is_concurrent and message["method"] == "tools/call":
                Thread(target=self._reply, args=(message,), daemon=True).start()
            else:
                self._reply(message)

    def _reply(self, request: Object) -> None:
        answer = self._answer(request["method"], request.get("params") or {})
        line = json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode() + b"\n"
        with self._writing:
            if request["id"] not in self._cancelled:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    def _answer(self, method: str, params: Object) -> Object:
        is_modern = any(key.endswith("/protocolVersion") for key in params.get("_meta", {}))
        match method:
            case "server/discover" if is_modern:
                result = self._discovered()
            case "initialize" if not is_modern:
                result = self._initialized(params)
            case "ping" if not is_modern:
                result = {}
            case "tools/list":
                result = self._listed(params.get("cursor"))
            case "tools/call":
                result = self._called(params["name"], params.get("arguments") or {})
            case _:
                return {"error": {"code": -32601, "message": "Method not found", "data": method}}
        return {"result": self._modern(method, result) if is_modern else result}

    def _discovered(self) -> Object:
        return {"capabilities": {"tools": {}}, "supportedVersions": ["2026-07-28"]}

    def _initialized(self, params: Object) -> Object:
        asked = params["protocolVersion"]
        known = ("2025-03-26", "2025-06-18", "2025-11-25")
        return {
            "protocolVersion": asked if asked in known else known[-1],
            "capabilities": {"tools": {}},
            "serverInfo": self._about,
        }

    def _listed(self, cursor: str | None) -> Object:
        if self._page_size is None:
            return {"tools": self._tools}
        start = int(cursor or 0)
        end = start + self._page_size
        more = {"nextCursor": str(end)} if end < len(self._tools) else {}
        return {"tools": self._tools[start:end], **more}

    def _called(self, name: str, arguments: Object) -> Object:
        try:
            return self._call(name, arguments)
        except ValueError as error:
            return words(str(error), is_error=True)

    def _modern(self, method: str, result: Object) -> Object:
        about = {"_meta": {"io.modelcontextprotocol/serverInfo": self._about}}
        may_be_kept = {} if method == "tools/call" else {"cacheScope": "private", "ttlMs": 0}
        return {"resultType": "complete", **may_be_kept, **about, **result}
