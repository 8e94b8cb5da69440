"""`toolfold mcp`: stdio in, daemon socket out.

The client's first questions are answered from the manifest while the daemon starts. All else goes
to the daemon and back, line by line. When the daemon dies, a new one is started; what can be asked
again is asked again, and a run that was lost is reported with what the journal knows of it.
"""

import os
import select
import sys
import time

from toolfold import __version__
from toolfold.relay.daemon import Daemon
from toolfold.relay.manifest import base_environ, manifest_path, read_manifest
from toolfold.relay.places import Misplaced
from toolfold.relay.wire import (
    WIRE,
    Lines,
    decode,
    encode,
    failure,
    key_of,
    protocol_of,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping
    from typing import Any

_CHUNK = 65_536
_POLL_S = 0.02
_START_S = 60.0
_GREETING_S = 60.0
_STARTS = 2
_INITIALIZE = "toolfold:initialize"
_IN_DOUBT = (
    "The toolfold daemon ended before the tool answered; whether the call was done is not known."
)

_NEW, _AWAY, _STARTING, _GREETING, _INITIALIZING, _READY = range(6)


def relay(world: "dict[str, Any]", environ: "Mapping[str, str]") -> int:
    """Serve the client on our standard input and output until it leaves."""
    try:
        Relay(world, environ).serve()
    except Misplaced as error:
        print(f"toolfold: {error}", file=sys.stderr)
        return 2
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    return 0


def read_world(arguments: list[str], environ: "Mapping[str, str]") -> "dict[str, Any] | None":
    """Return what decides a client's configuration; None for options that we do not know."""
    config, overrides = None, []
    words = iter(arguments)
    for word in words:
        name, separator, value = word.partition("=")
        if name not in {"--config", "--set"}:
            return None
        if not separator:
            value = next(words, "")
        if not value:
            return None
        if name == "--config":
            config = value
        else:
            overrides.append(value)
    try:
        cwd = os.getcwd()
    except OSError:
        return None
    return {"cwd": cwd, "config": config, "set": overrides, "environ": base_environ(environ)}


class Relay:
    """One client, and the daemon as long as it lives."""

    def __init__(self, world: "dict[str, Any]", environ: "Mapping[str, str]") -> None:
        self._world = world
        self._environ = environ
        self._client = os.urandom(8).hex()
        self._daemon = Daemon(environ)
        manifest = manifest_path(self._daemon.places.cache, world)
        self._answers = read_manifest(manifest, __version__) or {}
        self._link: _socket.socket | None = None
        self._from_daemon = Lines()
        self._phase = _NEW
        self._deadline = 0.0
        self._starts = 0
        self._initialize: dict[str, Any] | None = None
        self._introduces = False
        """Whether we answered the client's `initialize`, so that a daemon must be told of it."""
        self._waiting: list[tuple[dict[str, Any], bytes]] = []
        """What is to be sent to a daemon that is not ready."""
        self._pending: dict[str, dict[str, Any]] = {}
        """Requests that were sent to a daemon and are not answered."""
        self._lost: dict[str, dict[str, Any]] = {}
        """Tool calls whose daemon died."""
        self._repeated: set[str] = set()
        self._asked: set[str] = set()
        """Requests of the daemon that the client has not answered."""

    def serve(self) -> None:
        """Relay until the client closes our standard input."""
        client, lines = _standard_input(), Lines()
        while True:
            sources: list[Any] = [client, self._link] if self._link else [client]
            readable = select.select(sources, [], [], self._patience())[0]
            if self._link in readable:
                self._hear_daemon()  # first: a daemon that is gone must not be told anything
            if client in readable:
                chunk = os.read(client, _CHUNK)
                if not chunk:
                    return
                for line in lines.feed(chunk):
                    self._hear_client(line)
            if self._phase == _NEW:
                self._reach()  # only now: the first answers must not wait for it
            elif self._phase in {_STARTING, _GREETING, _INITIALIZING}:
                self._go_on()

    def _patience(self) -> float | None:
        if self._phase in {_NEW, _STARTING}:
            return _POLL_S
        return 1.0 if self._phase in {_GREETING, _INITIALIZING} else None

    # The client's side

    def _hear_client(self, line: bytes) -> None:
        message = decode(line)
        if message is None:
            reason = {"code": -32700, "message": "This line is not a JSON object."}
            self._tell_client({"jsonrpc": "2.0", "id": None, "error": reason})
        elif "method" not in message:
            self._hear_reply(message, line)
        elif "id" not in message:
            self._hear_notification(message, line)
        elif not self._answer(message):
            self._tell_daemon(message, line)

    def _answer(self, request: "dict[str, Any]") -> bool:
        """Answer a request ourselves, if we can."""
        method, protocol = request["method"], protocol_of(request)
        if method == "initialize":
            self._initialize = request
            return self._answer_initialize(request)
        result = self._answers.get(protocol or "legacy", {}).get(method)
        params = request.get("params") or {}
        if result is None or "cursor" in params:
            return False
        self._tell_client({"jsonrpc": "2.0", "id": request["id"], "result": result})
        return True

    def _answer_initialize(self, request: "dict[str, Any]") -> bool:
        result = self._answers.get("legacy", {}).get("initialize")
        if result is None:
            return False
        wanted = (request.get("params") or {}).get("protocolVersion")
        if wanted in self._answers["versions"]:
            result = {**result, "protocolVersion": wanted}
        self._tell_client({"jsonrpc": "2.0", "id": request["id"], "result": result})
        self._introduces = True
        if self._phase == _READY:
            self._introduce()
        return True

    def _hear_reply(self, message: "dict[str, Any]", line: bytes) -> None:
        """Pass on an answer to a question of the daemon that lives; others are stale."""
        key = key_of(message.get("id"))
        if key in self._asked:
            self._asked.discard(key)
            self._tell_daemon(message, line)

    def _hear_notification(self, message: "dict[str, Any]", line: bytes) -> None:
        if message["method"] == "notifications/cancelled":
            request_id = (message.get("params") or {}).get("requestId")
            self._pending.pop(key_of(request_id), None)
            self._lost.pop(key_of(request_id), None)
        is_ours = message["method"] == "notifications/initialized" and self._introduces
        if not is_ours and self._phase not in {_NEW, _AWAY}:
            self._tell_daemon(message, line)

    def _tell_client(self, message: "dict[str, Any]") -> None:
        write_all(1, encode(message))

    # The daemon's side

    def _tell_daemon(self, message: "dict[str, Any]", line: bytes) -> None:
        if self._phase != _READY:
            self._waiting.append((message, line))
            self._reach()
            return
        if "method" in message and "id" in message:
            self._pending[key_of(message["id"])] = message
        self._send(line + b"\n")

    def _send(self, content: bytes) -> None:
        assert self._link is not None  # noqa: S101
        try:
            self._link.sendall(content)
        except OSError:
            self._lose()

    def _reach(self) -> None:
        """Begin to reach the daemon, unless that has begun."""
        if self._phase in {_NEW, _AWAY}:
            self._starts = 0
            self._phase = _STARTING
            self._deadline = time.monotonic() + _START_S
            self._go_on()

    def _go_on(self) -> None:
        """Take the next step towards the daemon."""
        if self._phase == _STARTING:
            found = self._daemon.connect()
            if found is not None:
                self._greet(*found)
                return
            if self._starts < _STARTS:
                self._starts += self._daemon.start()
            elif not self._daemon.is_locked():
                self._give_up(self._no_daemon("ended as soon as it was started"))
                return
        if time.monotonic() > self._deadline:
            self._give_up(self._no_daemon("did not answer in time"))

    def _no_daemon(self, reason: str) -> str:
        words = self._daemon.last_words().splitlines()
        ending = f", which ends with: {words[-1]}" if words else "."
        return f"The toolfold daemon {reason}. See its log {self._daemon.places.log}{ending}"

    def _greet(self, link: "_socket.socket", token: str) -> None:
        self._link = link
        self._from_daemon = Lines()
        self._phase = _GREETING
        self._deadline = time.monotonic() + _GREETING_S
        about = {"wire": WIRE, "version": __version__, "token": token, "pid": os.getpid()}
        self._send(encode({**about, "kind": "mcp", "client": self._client, **self._world}))

    def _hear_daemon(self) -> None:
        assert self._link is not None  # noqa: S101
        try:
            chunk = self._link.recv(_CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            self._lose()
            return
        for line in self._from_daemon.feed(chunk):
            if self._phase in {_GREETING, _INITIALIZING}:
                self._hear_greeting(decode(line) or {})
            elif self._phase == _READY:
                self._pass_on(line)

    def _hear_greeting(self, message: "dict[str, Any]") -> None:
        if message.get("id") == _INITIALIZE:
            self._send(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            self._be_ready()
        elif "error" in message:
            self._give_up(str(message["error"]))
        elif "needs" in message:
            self._present(message)
        elif "ready" in message:
            self._report_losses(message.get("lost") or {})
            if self._introduces:
                self._introduce()
            else:
                self._be_ready()

    def _present(self, greeting: "dict[str, Any]") -> None:
        """Give the variables that the configuration names; have an older daemon replaced."""
        if _number(greeting.get("version")) < _number(__version__):
            self._send(encode({"drain": True}))
            self._drop_link()
            self._phase = _STARTING
            self._starts = 0
            return
        variables = {
            name: self._environ[name] for name in greeting["needs"] if name in self._environ
        }
        self._send(encode({"environ": variables, "lost": list(self._lost)}))

    def _introduce(self) -> None:
        """Tell a daemon what the client said of itself when we answered for it."""
        assert self._initialize is not None  # noqa: S101
        self._phase = _INITIALIZING
        self._send(encode({**self._initialize, "id": _INITIALIZE}))

    def _be_ready(self) -> None:
        self._phase = _READY
        while self._waiting and self._phase == _READY:
            self._tell_daemon(*self._waiting.pop(0))

    def _pass_on(self, line: bytes) -> None:
        message = decode(line) or {}
        if "method" not in message:
            answered = self._pending.pop(key_of(message.get("id")), None)
            # From now on a daemon that takes over has to be told.
            self._introduces |= answered is not None and answered["method"] == "initialize"
        elif "id" in message:
            self._asked.add(key_of(message["id"]))
        elif message["method"].endswith("/list_changed"):
            self._answers = {}
        write_all(1, line + b"\n")

    # When it is gone

    def _lose(self) -> None:
        """The daemon is gone: ask again what may be asked again, find out about the rest."""
        was_greeting = self._phase in {_GREETING, _INITIALIZING}
        self._drop_link()
        self._phase = _STARTING if was_greeting else _AWAY
        self._asked.clear()
        if was_greeting:
            return  # what waits still waits
        pending, self._pending = self._pending, {}
        for key, request in pending.items():
            if request["method"] == "tools/call":
                self._lost[key] = request
            else:
                self._ask_again(key, request)
        if self._lost or self._waiting:
            self._reach()

    def _ask_again(self, key: str, request: "dict[str, Any]") -> None:
        if key in self._repeated:
            self._tell_client(failure(request, "The toolfold daemon ended twice at this request."))
        else:
            self._repeated.add(key)
            self._waiting.append((request, encode(request).rstrip()))

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _report_losses(self, reports: "dict[str, dict[str, Any] | None]") -> None:
        """Tell of each lost call what the journal knows. What never began is asked again."""
        lost, self._lost = self._lost, {}
        for key, request in lost.items():
            report = reports.get(key)
            name = (request.get("params") or {}).get("name")
            if report:
                self._tell_client(failure(request, report["text"], is_error=report["isError"]))
            elif name == "execute_code":
                self._ask_again(key, request)
            else:
                self._tell_client(failure(request, _IN_DOUBT))

    def _give_up(self, reason: str) -> None:
        """Tell whoever waits that there is no daemon, and why."""
        self._drop_link()
        self._phase = _AWAY
        waiting = [message for message, _ in self._waiting if "method" in message]
        requests = [*self._pending.values(), *self._lost.values(), *waiting]
        self._pending, self._lost, self._waiting = {}, {}, []
        for request in requests:
            if "id" in request:
                self._tell_client(failure(request, reason))


def _standard_input() -> int:
    """Return a descriptor of the client's side that `select` can wait for."""
    if os.name == "posix":
        return 0
    # Elsewhere it waits for sockets only, so a thread copies one into the other.
    import socket
    import threading

    ours, theirs = socket.socketpair()

    def copy() -> None:
        while chunk := os.read(0, _CHUNK):
            theirs.sendall(chunk)
        theirs.close()

    threading.Thread(target=copy, daemon=True).start()
    return ours.detach()


def _number(version: object) -> tuple[int, ...]:
    """Return a version for comparing: its leading numbers."""
    numbers = []
    for part in str(version).split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
