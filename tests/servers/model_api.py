"""A local stand-in for the model API of Claude Code: it calls one tool once, and remembers all.

It answers `/v1/messages` as the real one streams: to a request that offers the tool and holds no
result yet it answers with a call of that tool, to every other with a few words.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

LAST_WORDS = "That is all."


class ModelApi:
    """What the stand-in was asked, and where it is reached."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    @property
    def conversation(self) -> list[dict[str, Any]]:
        """The requests that offered tools: those of the conversation itself, in order."""
        return [request for request in self.requests if request.get("tools")]

    def results(self) -> list[dict[str, Any]]:
        """The tool results in the last request of the conversation."""
        last = self.conversation[-1]["messages"][-1]["content"]
        return [block for block in last if block["type"] == "tool_result"]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return one block of content: a call, or words."""
        offered = any(tool.get("name") == self.tool for tool in request.get("tools", []))
        if offered and '"tool_result"' not in json.dumps(request["messages"]):
            call = {"type": "tool_use", "id": "toolu_01", "name": self.tool}
            return {**call, "input": self.arguments}
        return {"type": "text", "text": LAST_WORDS}


@contextmanager
def serve_model_api(tool: str, arguments: dict[str, Any]) -> Iterator[ModelApi]:
    """Serve on loopback until the block is left."""
    api = ModelApi(tool, arguments)

    class Door(_Door):
        model_api = api

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Door(BaseHTTPRequestHandler):
    model_api: ModelApi

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Keep the test's output clean."""

    def do_HEAD(self) -> None:
        self._send("application/json", b"")

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.path.split("?")[0].endswith("/v1/messages"):
            self._send("application/json", b'{"input_tokens": 10}')
            return
        request = json.loads(body)
        self.model_api.requests.append(request)
        message = _message(request, self.model_api.answer(request))
        if request.get("stream"):
            self._send("text/event-stream", "".join(_events(message)).encode())
        else:
            self._send("application/json", json.dumps(message).encode())

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _message(request: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _events(message: dict[str, Any]) -> Iterator[str]:
    [block] = message["content"]
    if block["type"] == "text":
        start: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    yield _event("content_block_start", index=0, content_block=start)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event("message_delta", delta=end, usage={"output_tokens": 5})
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
