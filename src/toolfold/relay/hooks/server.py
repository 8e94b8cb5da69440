"""Ask an MCP server that the user named for notes, or give it a record to keep.

The last resort of a hook, for those whose notes are elsewhere: it speaks as much MCP as that takes,
with a program on its standard input and output. What tools there are is asked; those that are used
are known by their names.
"""

import json
import os
import re
import select
import time

from toolfold.relay.hooks.secrets import beginning_without_secrets
from toolfold.relay.hooks.text import fenced, within
from toolfold.relay.paths import find_directories
from toolfold.relay.wire import LineReader, decode, encode, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from typing import Any

    from toolfold.relay.hooks.request import HookRequest
    from toolfold.relay.hooks.settings import HookOptions

_SEARCH = ("memory_search", "retrieve_memory", "search_memory", "recall", "search", "search_nodes")
_STORE = ("memory_store", "store_memory", "remember", "store")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_PASSED_ON = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "SYSTEMROOT")
_PROTOCOL = "2025-06-18"
_HOW = "They come from an MCP server, whose tools say more."
_MAX_QUERY = 1_000
_MAX_FILE = 16_000_000


class ServerFailed(Exception):
    """The server was of no help; the message says why."""


def ask(request: "HookRequest", options: "HookOptions", timeout_s: float) -> "dict[str, Any]":
    """Return what the server says to a hook.

    Raises:
        ServerFailed: It is not configured, does not answer, or has no tool for this.
    """
    entry = _entry(options.server, request.environ)
    with _Server(entry, request, time.monotonic() + timeout_s) as server:
        tools = server.begin()
        if request.hook in {"session-start", "prompt"}:
            return _found(request, options, server.use(tools, _SEARCH, _search(request, options)))
        if record := _record(request):
            server.use(tools, _STORE, record)
        return {}


def _search(request: "HookRequest", options: "HookOptions") -> "dict[str, Any]":
    prompt = beginning_without_secrets(request.payload.get("prompt", ""), _MAX_QUERY)
    query = prompt or os.path.basename(request.cwd) or "project"
    return {"query": query[:_MAX_QUERY], "limit": options.notes, "n_results": options.notes}


def _found(request: "HookRequest", options: "HookOptions", text: str) -> "dict[str, Any]":
    lines = within(
        [line for line in text.splitlines() if line.strip()], options.budget_tokens - 120
    )
    if not lines:
        return {}
    about = f"MCP server {options.server}"
    project = os.path.basename(request.cwd)
    return {"context": fenced(lines, project=project, about=about, how=_HOW)}


def _record(request: "HookRequest") -> "dict[str, Any]":
    path = request.payload.get("transcript_path")
    if not path:
        return {}
    from toolfold.relay.hooks.record import describe, read_transcript

    project = os.path.basename(request.cwd)
    content = describe(read_transcript(path), project=project, directory=request.cwd)
    return {"content": content, "tags": ["session"]} if content else {}


def _entry(name: str, environ: "Mapping[str, str]") -> "dict[str, Any]":
    path = os.path.join(find_directories(environ)["config"], "mcp.json")
    try:
        with open(path, "rb") as file:
            root = json.loads(file.read(_MAX_FILE))
    except (OSError, ValueError, RecursionError) as error:
        raise ServerFailed(f"{path} cannot be read: {error}.") from error
    servers = root.get("mcpServers", root.get("servers")) if isinstance(root, dict) else None
    entry = servers.get(name) if isinstance(servers, dict) else None
    if not isinstance(entry, dict):
        raise ServerFailed(f"{path} names no server {name!r}.")
    if not isinstance(entry.get("command"), str):
        raise ServerFailed(f"{name!r} is no program; hooks ask only such servers.")
    return entry


class _Server:
    """A server that is started, asked a few things, and ended."""

    def __init__(self, entry: "dict[str, Any]", request: "HookRequest", deadline: float) -> None:
        self._deadline = deadline
        self._lines = LineReader()
        self._heard: list[bytes] = []
        self._asked = 0
        self._process = _start(entry, request)

    def __enter__(self) -> "_Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self) -> "list[dict[str, Any]]":
        """Shake hands; return the tools that there are."""
        about = {"name": "toolfold-hook", "version": "1"}
        self._ask(
            "initialize",
            {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about},
        )
        self._send({"method": "notifications/initialized"})
        tools = self._ask("tools/list", {}).get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    def use(
        self, tools: "list[dict[str, Any]]", names: tuple[str, ...], given: "dict[str, Any]"
    ) -> str:
        """Call the first of these tools that there is, with those arguments that it takes."""
        there = {tool.get("name"): tool for tool in tools}
        name = next((name for name in names if name in there), None)
        if name is None:
            raise ServerFailed(f"It has none of the tools {', '.join(names)}.")
        schema = there[name].get("inputSchema")
        taken = schema.get("properties", {}) if isinstance(schema, dict) else {}
        arguments = {key: value for key, value in given.items() if key in taken}
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(
            block["text"]
            for block in result.get("content", [])
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        )
        if result.get("isError"):
            raise ServerFailed(f"{name} failed: {text}")
        return text

    def _ask(self, method: str, params: "dict[str, Any]") -> "dict[str, Any]":
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while True:
            message = decode(self._next()) or {}
            if message.get("id") != self._asked or "method" in message:
                continue
            result = message.get("result")
            if not isinstance(result, dict):
                raise ServerFailed(f"{method} failed: {message.get('error')}.")
            return result

    def _send(self, message: "dict[str, Any]") -> None:
        assert self._process.stdin is not None  # noqa: S101
        write_all(self._process.stdin.fileno(), encode({"jsonrpc": "2.0", **message}))

    def _next(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101
        source = self._process.stdout.fileno()
        while not self._heard:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0 or not select.select([source], [], [], left_s)[0]:
                raise ServerFailed("It did not answer in time.")
            chunk = os.read(source, 65_536)
            if not chunk:
                raise ServerFailed("It ended before it answered.")
            self._heard += self._lines.feed(chunk)
        return self._heard.pop(0)


def _start(entry: "dict[str, Any]", request: "HookRequest") -> "subprocess.Popen[bytes]":
    import subprocess

    environ = request.environ

    def filled(value: object) -> str:
        return _VARIABLE.sub(lambda found: environ.get(found[1], found[2] or ""), str(value))

    variables = {name: environ[name] for name in _PASSED_ON if name in environ}
    given = entry.get("env")
    if isinstance(given, dict):
        variables |= {str(name): filled(value) for name, value in given.items()}
    arguments = entry.get("args")
    command = [filled(entry["command"])]
    command += [filled(each) for each in arguments] if isinstance(arguments, list) else []
    return subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=request.cwd,
        env=variables,
    )
