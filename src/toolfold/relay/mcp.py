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
from toolfold.relay.daemon import DaemonHandle
from toolfold.relay.link import DaemonLink, PendingRequests
from toolfold.relay.manifest import FirstAnswers, base_environ
from toolfold.relay.paths import NoUsableDirectory
from toolfold.relay.surface import LISTS
from toolfold.relay.wire import (
    MAX_LINE,
    LineReader,
    decode,
    encode,
    failure,
    key_of,
    peek,
    protocol_of,
    refusal,
    what_is_wrong,
    write_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SETTING = {"--tools": "tools=", "--namespace": "memory.namespace="}
_CHUNK = 65_536
_GLANCE_S = 0.02
_GUESS_AFTER_S = 0.15
_FINISH_S = 1.0
_REPEATS = 1
_MAX_TOLD = 100
_REPEATS_OF_UNSEEN = 5
_INITIALIZE = "toolfold:initialize"
_LISTEN = "subscriptions/listen"
_CHECKING = "toolfold:checking:"
_IN_DOUBT = "The toolfold daemon ended before this call was answered; its outcome is unknown."


def relay(context: "dict[str, Any]", environ: "Mapping[str, str]") -> int:
    """Serve the client on our standard input and output until it leaves."""
    try:
        Relay(context, environ).serve()
    except NoUsableDirectory as error:
        print(f"toolfold: {error}", file=sys.stderr)
        return 2
    except (BrokenPipeError, KeyboardInterrupt):
        return 0
    return 0


def read_client_context(
    arguments: list[str], environ: "Mapping[str, str]"
) -> "dict[str, Any] | None":
    """Return what decides a client's configuration; None for options that we do not know."""
    config, overrides = None, []
    words = iter(arguments)
    for word in words:
        name, separator, value = word.partition("=")
        if name not in {"--config", "--set", *_SETTING}:
            return None
        if not separator:
            value = next(words, "")
        if not value:
            return None
        if name == "--config":
            config = value
        else:
            overrides.append(_SETTING.get(name, "") + value)
    try:
        cwd = os.getcwd()
    except OSError:
        return None
    return {"cwd": cwd, "config": config, "set": overrides, "environ": base_environ(environ)}


class Relay:
    """One client, and the daemon as long as it lives."""

    def __init__(self, context: "dict[str, Any]", environ: "Mapping[str, str]") -> None:
        daemon = DaemonHandle(environ)
        self._first = FirstAnswers(daemon.places.cache, context, __version__)
        self._link = DaemonLink(daemon, context, environ, self)
        self._pending = PendingRequests(0)
        self._is_ready = False
        self._waiting: list[tuple[float, dict[str, Any]]] = []
        """What is to be sent to a daemon that is not ready, and since when it waits."""
        self._lost: dict[str, dict[str, Any]] = {}
        """Tool calls whose daemon died."""
        self._told: list[str] = []
        """Those of which the client knows by now."""
        self._repeated: dict[str, int] = {}
        """How often requests were asked again."""
        self._initialize: dict[str, Any] | None = None
        """The client's `initialize`, once it was answered: each further daemon is told of it."""
        self._stands_in = False
        """Whether it was we who answered it."""
        self._said: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        """By method, the last request for a list and its answer, a daemon's or ours in its stead:
        each further daemon is asked whether it says the same."""
        self._listening: dict[str, dict[str, Any]] = {}
        """The client's requests to hear of changes, which are not answered before they end."""
        self._subscribed: dict[str, dict[str, Any]] = {}
        """By resource, the request by which an older client wants to hear of it."""

    def serve(self) -> None:
        """Relay until the client closes our standard input."""
        client, lines = _standard_input(), LineReader()
        is_new = True
        while True:
            link = self._link.socket
            sources: list[Any] = [] if self._link.is_congested else [client]
            sources += [] if link is None else [link]
            sinks = [link] if link is not None and self._link.has_unsent else []
            patience_s = _GLANCE_S if is_new else self._patience_s()
            readable, writable, _ = select.select(sources, sinks, [], patience_s)
            if writable:
                self._link.flush()
            if link in readable:
                self._link.receive()  # first: a daemon that is gone must not be told anything
            if client in readable and not self._hear(client, lines):
                self._finish()
                return
            if is_new:
                is_new = False
                self._link.reach()  # only now: the first answers must not wait for it
            self._link.step()
            self._guess_what_waits()

    def _finish(self) -> None:
        """Answer the first questions of a client that has said its last; calls end with it."""
        self._guess_what_waits(longer_than_s=0)
        deadline = time.monotonic() + _FINISH_S
        while (link := self._link.socket) is not None and self._pending.has_questions():
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([link], [], [], left_s)[0]:
                return
            self._link.receive()

    def _patience_s(self) -> float | None:
        return self._link.patience_s if self._is_ready or not self._waiting else _GLANCE_S

    def _hear(self, client: int, lines: LineReader) -> bool:
        """Take in what the client sent; return False when it has left."""
        chunk = os.read(client, _CHUNK)
        dropped = lines.dropped
        for line in lines.feed(chunk):
            self._on_client_line(line)
        if lines.dropped > dropped:
            words = f"A line may have at most {MAX_LINE:,} bytes. It was rejected."
            self._send_to_client(refusal(None, words))
        return bool(chunk)

    def _on_client_line(self, line: bytes) -> None:
        message = decode(line)
        if message is None:
            reason = {"code": -32700, "message": "This line is not a JSON object."}
            self._send_to_client({"jsonrpc": "2.0", "id": None, "error": reason})
        elif wrong := what_is_wrong(message):
            self._send_to_client(refusal(None, wrong))
        elif "method" not in message:
            self._on_reply(message)
        elif "id" not in message:
            self._on_notification(message)
        else:
            self._on_request(message)

    def _on_request(self, request: "dict[str, Any]") -> None:
        if request["method"] == _LISTEN:
            self._listening[key_of(request["id"])] = request
        result = self._first.exact(request, protocol_of(request))
        if result is None:
            self._send_to_daemon(request)
        else:
            self._answer(request, result)

    def _on_reply(self, message: "dict[str, Any]") -> None:
        """Pass on an answer to a question of the daemon that lives; others are stale."""
        reply = self._pending.reply(message)
        if reply is not None:
            self._send_to_daemon(reply)

    def _on_notification(self, message: "dict[str, Any]") -> None:
        if message["method"] == "notifications/cancelled":
            self._cancel((message.get("params") or {}).get("requestId"))
        # Where we answered `initialize`, we also tell the daemon when that is complete.
        is_ours = message["method"] == "notifications/initialized" and self._stands_in
        if self._is_ready and not is_ours:
            self._send_to_daemon(message)

    def _cancel(self, request_id: object) -> None:
        """Forget a request, wherever it is."""
        key = key_of(request_id)
        self._pending.answered(request_id)
        self._lost.pop(key, None)
        self._listening.pop(key, None)
        self._waiting = [
            item for item in self._waiting if "id" not in item[1] or key_of(item[1]["id"]) != key
        ]

    def _answer(self, request: "dict[str, Any]", result: "dict[str, Any]") -> None:
        """Answer one of the first questions in the daemon's stead."""
        self._send_to_client({"jsonrpc": "2.0", "id": request["id"], "result": result})
        method = request["method"]
        if method == "initialize":
            self._initialize = request
            self._stands_in = True
            if self._is_ready:
                self._introduce()
        elif method.endswith("/list"):
            self._said[method] = (request, result)
            self._check(method)

    def _guess_what_waits(self, *, longer_than_s: float = _GUESS_AFTER_S) -> None:
        """Answer as well as is known what has waited for a daemon as long as a client may wait."""
        due = time.monotonic() - longer_than_s
        for item in list(self._waiting) if not self._is_ready else ():
            since, request = item
            is_request = "method" in request and "id" in request
            guess = self._first.guess(request, protocol_of(request)) if is_request else None
            if guess is not None and since <= due:
                self._waiting.remove(item)
                self._answer(request, guess)

    def _send_to_client(self, message: "dict[str, Any]") -> None:
        write_all(1, encode(message))

    def _send_to_daemon(self, message: "dict[str, Any]") -> None:
        if self._is_ready:
            self._pending.sent(message)
            self._link.send(encode(message))
        else:
            self._waiting.append((time.monotonic(), message))
            self._link.reach()

    def lost_calls(self) -> list[str]:
        """Return the calls that earlier daemons left without an answer."""
        return list(self._lost)

    def told_calls(self) -> list[str]:
        """Return the calls that the client was told to be lost: no daemon need say it again."""
        return self._told

    def greeted(self, reports: "dict[str, Any]") -> None:
        """Report what was lost, and go on with this daemon."""
        self._report_losses(reports)
        if self._initialize is None:
            self._be_ready()
        else:
            self._introduce()

    def _introduce(self) -> None:
        """Tell the daemon what the client said of itself to us, or to a daemon before."""
        assert self._initialize is not None  # noqa: S101
        self._is_ready = False
        self._link.send(encode({**self._initialize, "id": _INITIALIZE}))

    def _be_ready(self) -> None:
        self._is_ready = True
        for method in self._said:
            self._check(method)
        for request in self._subscribed.values():
            self._link.send(encode({**request, "id": _CHECKING + request["method"]}))
        waiting, self._waiting = self._waiting, []
        due = {key_of(message["id"]) for _, message in waiting if "id" in message}
        for key, request in self._listening.items():
            if key not in due:
                self._send_to_daemon(request)
        for _, message in waiting:
            self._send_to_daemon(message)

    def on_line(self, line: bytes) -> None:
        """Pass on what the daemon says, but for what is between us."""
        message = peek(line) or {}
        if "received" in message:
            self._pending.received(message["received"])
        elif message.get("id") == _INITIALIZE:
            self._link.send(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            self._be_ready()
        elif str(message.get("id")).startswith(_CHECKING):
            self._compare(message)
        elif "method" in message and "id" in message:
            self._send_to_client(self._pending.question(message))
        elif message.get("method") == "notifications/cancelled":
            self._send_to_client(self._pending.withdrawal(message))
        else:
            self._note(message)
            write_all(1, line + b"\n")

    def _note(self, message: "dict[str, Any]") -> None:
        if "method" not in message:
            answered = self._pending.answered(message.get("id"))
            self._repeated.pop(key_of(message.get("id")), None)
            self._listening.pop(key_of(message.get("id")), None)
            if answered is not None and answered["method"] == "initialize":
                self._initialize = answered
            elif answered is not None and answered["method"].endswith("/list"):
                self._note_list(answered, message.get("result") or {})
            elif answered is not None and "result" in message:
                self._note_subscription(answered)
        elif message["method"].endswith("/list_changed"):
            self._first.forget()

    def _note_subscription(self, request: "dict[str, Any]") -> None:
        """Remember what each further daemon must be asked for again."""
        if request["method"] == "resources/subscribe":
            self._subscribed[str(request["params"]["uri"])] = request
        elif request["method"] == "resources/unsubscribe":
            self._subscribed.pop(str(request["params"]["uri"]), None)

    def _note_list(self, request: "dict[str, Any]", result: "dict[str, Any]") -> None:
        """Remember what the client knows, if that is all of a list."""
        is_whole = "cursor" not in (request.get("params") or {}) and "nextCursor" not in result
        if is_whole and any(part in result for part in LISTS):
            self._said[request["method"]] = (request, result)

    def _check(self, method: str) -> None:
        """Ask the daemon, once it is ready, what we answered in its stead."""
        if self._is_ready:
            request, _ = self._said[method]
            self._link.send(encode({**request, "id": _CHECKING + method}))

    def _compare(self, answer: "dict[str, Any]") -> None:
        """Have the client ask again for a list, if what we said is not what the daemon says."""
        method = answer["id"].removeprefix(_CHECKING)
        request, said = self._said.get(method, (None, None))
        if request is None or said is None or "result" not in answer:
            return
        self._said[method] = (request, answer["result"])
        if any(answer["result"].get(part) != said[part] for part in said if part in LISTS):
            self._first.forget()
            self._announce(method.partition("/")[0], is_modern=protocol_of(request) is not None)

    def _announce(self, kind: str, *, is_modern: bool) -> None:
        """Tell the client that a list has changed; a modern one in the streams it listens to."""
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "method": f"notifications/{kind}/list_changed",
        }
        if not is_modern:
            self._send_to_client(message)
            return
        for request in self._listening.values():
            if (request["params"].get("notifications") or {}).get(f"{kind}ListChanged"):
                meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
                self._send_to_client({**message, "params": {"_meta": meta}})

    def parted(self) -> None:
        """Ask again what may be asked again, and find out about the rest."""
        pending, self._pending = self._pending, PendingRequests(self._pending.number + 1)
        self._is_ready = False
        for question in pending.open_questions():
            params = {"requestId": question, "reason": "The daemon that asked has ended."}
            self._send_to_client(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            )
        begun, unseen = pending.unanswered()
        for key, request in (begun | unseen).items():
            if key in begun and request["method"] == "tools/call":
                self._lost[key] = request
            elif key not in self._listening:
                self._ask_again(key, request)
        if self._lost or self._waiting:
            self._link.reach()

    def _ask_again(self, key: str, request: "dict[str, Any]") -> None:
        # A call that no daemon has seen cannot be what ends them.
        most = _REPEATS_OF_UNSEEN if request["method"] == "tools/call" else _REPEATS
        self._repeated[key] = self._repeated.get(key, 0) + 1
        if self._repeated[key] > most:
            words = "The toolfold daemon ended again and again before it answered this request."
            self._send_to_client(failure(request, words))
        else:
            self._waiting.append((time.monotonic(), request))

    def _report_losses(self, reports: "dict[str, dict[str, Any] | None]") -> None:
        """Tell of each lost call what the journal knows."""
        lost, self._lost = self._lost, {}
        self._told = [*self._told, *lost][-_MAX_TOLD:]
        for key, request in lost.items():
            report = reports.get(key) or {"text": _IN_DOUBT, "isError": True}
            self._send_to_client(failure(request, report["text"], is_error=report["isError"]))

    def gave_up(self, reason: str) -> None:
        """Tell whoever waits that there is no daemon, and why."""
        self._guess_what_waits(longer_than_s=0)
        waiting = [message for _, message in self._waiting if "method" in message]
        requests = [*self._lost.values(), *waiting]
        self._lost, self._waiting = {}, []
        for request in requests:
            if "id" in request:
                self._send_to_client(failure(request, reason))


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
