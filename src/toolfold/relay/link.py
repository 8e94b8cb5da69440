"""The way from a relay to the daemon: find it or start it, greet it, notice when it is gone."""

import os
import time

from toolfold import __version__
from toolfold.relay.daemon import DaemonHandle
from toolfold.relay.paths import NoUsableDirectory
from toolfold.relay.wire import MAX_ANSWER, LineReader, decode, encode, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class Owner(Protocol):
        """Whoever uses a link, and is told what happens to it."""

        def lost_calls(self) -> list[str]:
            """Return the calls that earlier daemons left without an answer."""
            ...

        def told_calls(self) -> list[str]:
            """Return those of which the client knows by now."""
            ...

        def greeted(self, reports: dict[str, Any]) -> None:
            """The daemon is ready; it says what it knows of the lost calls."""
            ...

        def on_line(self, line: bytes) -> None:
            """The daemon said something."""
            ...

        def parted(self) -> None:
            """The daemon is gone, and nothing more will be heard of it."""
            ...

        def gave_up(self, reason: str) -> None:
            """There is no daemon, and this is why."""
            ...


_CHUNK = 65_536
_MUCH = 1_000_000
_POLL_S = 0.02
_REACH_S = 60.0
_STARTS = 2
_GREETINGS = 4

_AWAY, _STARTING, _GREETING, _OPEN = range(4)


class DaemonLink:
    """A connection to the daemon, or the attempt to have one.

    It never waits: what the daemon does not take yet is kept until `flush`. Otherwise both sides
    could wait for each other to read.
    """

    def __init__(
        self,
        daemon: DaemonHandle,
        context: "dict[str, Any]",
        environ: "Mapping[str, str]",
        owner: "Owner",
        *,
        kind: str = "mcp",
    ) -> None:
        """`kind` is what we speak once we are greeted."""
        self.client = os.urandom(8).hex()
        """Our name at the daemon, whichever it is."""
        self.socket: _socket.socket | None = None
        self.on_replace: Callable[[str], None] = lambda _version: None
        """Told the version of an older daemon that makes room for ours."""
        self._daemon = daemon
        self._context = context
        self._environ = environ
        self._owner = owner
        self._kind = kind
        self._lines = LineReader(MAX_ANSWER)
        self._unsent = bytearray()
        self._is_broken = False
        self._phase = _AWAY
        self._deadline = 0.0
        self._starts = 0
        self._greetings = 0
        self._proof = ""

    @property
    def has_unsent(self) -> bool:
        """Whether there is something to `flush`."""
        return bool(self._unsent)

    @property
    def is_congested(self) -> bool:
        """Whether so much is unsent that nothing should be added."""
        return len(self._unsent) > _MUCH

    @property
    def patience_s(self) -> float | None:
        """How long to wait for something to happen before the next `step`."""
        if self._phase == _STARTING:
            return _POLL_S
        return 1.0 if self._phase == _GREETING else None

    def reach(self) -> None:
        """Begin to reach the daemon, unless that has begun."""
        if self._phase == _AWAY:
            self._starts = self._greetings = 0
            self._phase = _STARTING
            self._deadline = time.monotonic() + _REACH_S
            self.step()

    def step(self) -> None:
        """Go on towards the daemon, if we are on the way."""
        if self._phase == _STARTING:
            try:
                self._try()
            except NoUsableDirectory as error:
                self._give_up(str(error))
        if self._phase in {_STARTING, _GREETING} and time.monotonic() > self._deadline:
            self._give_up(self._no_daemon("did not answer in time"))

    def send(self, content: bytes) -> None:
        """Send to the daemon, at once or later. One that is gone is told nothing.

        That it is gone is only noticed once all that it said before was heard: what it has begun or
        answered must not be asked again.
        """
        if not self._is_broken:
            self._unsent += content
            self.flush()

    def flush(self) -> None:
        """Send what the daemon takes now of what is unsent."""
        assert self.socket is not None  # noqa: S101
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._is_broken = True
            self._unsent.clear()

    def receive(self) -> None:
        """Take in what the daemon sent."""
        link = self.socket
        assert link is not None  # noqa: S101
        try:
            chunk = link.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._part()
            return
        for line in self._lines.feed(chunk):
            if self.socket is not link:
                return  # what is left was said by one that we left
            if self._phase == _GREETING:
                self._on_greeting(decode(line) or {})
            else:
                self._owner.on_line(line)

    def close(self) -> None:
        """Leave the daemon, or give up reaching it."""
        self._close()
        self._phase = _AWAY

    def _try(self) -> None:
        found = self._daemon.connect()
        if found is not None:
            self._greet(*found)
        elif self._starts < _STARTS:
            self._starts += self._daemon.start()
        elif not self._daemon.is_locked():
            self._give_up(self._no_daemon("ended as soon as it was started"))

    def _greet(self, link: "_socket.socket", token: str) -> None:
        self._greetings += 1
        if self._greetings > _GREETINGS:
            link.close()
            self._give_up(self._no_daemon("ends when it is spoken to"))
            return
        link.setblocking(False)
        self.socket, self._is_broken = link, False
        self._lines, self._unsent = LineReader(MAX_ANSWER), bytearray()
        self._phase = _GREETING
        nonce = os.urandom(16).hex()
        self._proof = self._daemon.proof(token, f"daemon:{nonce}")
        about = {"pid": os.getpid(), "client": self.client, **self._context}
        self.send(encode(self._daemon.hello(self._kind, token, nonce) | about))

    def _on_greeting(self, message: "dict[str, Any]") -> None:
        version = message.get("version", __version__)
        if _number(version) < _number(__version__):
            self.on_replace(str(version))
            self._replace()
        elif "error" in message:
            self._give_up(str(message["error"]))
        elif "needs" in message:
            self._present(message)
        elif "ready" in message:
            self._phase = _OPEN
            self._owner.greeted(message.get("lost") or {})

    def _replace(self) -> None:
        """Have an older daemon make room, and start our own."""
        self.send(encode({"drain": True}))
        self._close()
        self._phase = _STARTING
        self._starts = 0

    def _present(self, greeting: "dict[str, Any]") -> None:
        """Give the variables that the configuration names, to nobody but the daemon.

        A command is given all: it is ours, and may ask for any.
        """
        if greeting.get("proof") != self._proof:
            self._give_up("Another process answers in place of the daemon; nothing was sent to it.")
            return
        needs = self._environ if self._kind == "command" else greeting["needs"]
        variables = {name: self._environ[name] for name in needs if name in self._environ}
        lost, told = self._owner.lost_calls(), self._owner.told_calls()
        self.send(encode({"environ": variables, "lost": lost, "told": told}))

    def _part(self) -> None:
        """The daemon is gone. One that went while it was greeted is sought again."""
        was_open = self._phase == _OPEN
        self._close()
        self._phase = _AWAY if was_open else _STARTING
        if was_open:
            self._owner.parted()

    def _give_up(self, reason: str) -> None:
        self.close()
        self._owner.gave_up(reason)

    def _close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None
            self._unsent.clear()

    def _no_daemon(self, reason: str) -> str:
        words = self._daemon.last_words().splitlines()
        ending = f", which ends with: {words[-1]}" if words else "."
        return f"The toolfold daemon {reason}. See its log {self._daemon.places.log}{ending}"


def _number(version: object) -> tuple[int, ...]:
    """Return a version for comparing: its leading numbers."""
    numbers = []
    for part in str(version).split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


_QUICK = {
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
}


class PendingRequests:
    """The requests of either side that the other has not answered."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._pending: dict[str, dict[str, Any]] = {}
        self._received: set[str] = set()
        self._asked: dict[str, Any] = {}
        self._questions = 0

    def sent(self, message: "dict[str, Any]") -> None:
        """Note what was sent to the daemon."""
        if "method" in message and "id" in message:
            self._pending[key_of(message["id"])] = message

    def received(self, request_id: object) -> None:
        """Note that the daemon works on a request, which must not be asked again from now on."""
        self._received.add(key_of(request_id))

    def answered(self, request_id: object) -> "dict[str, Any] | None":
        """Return the request that the daemon answered, or the client gave up."""
        key = key_of(request_id)
        self._received.discard(key)
        return self._pending.pop(key, None)

    def has_questions(self) -> bool:
        """Whether the daemon owes an answer that takes it no time: to anything but a call."""
        return any(each["method"] in _QUICK for each in self._pending.values())

    def unanswered(self) -> "tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]":
        """Return by key the requests that the daemon worked on, and those that it never saw."""
        begun = {key: each for key, each in self._pending.items() if key in self._received}
        rest = {key: each for key, each in self._pending.items() if key not in self._received}
        return begun, rest

    def question(self, message: "dict[str, Any]") -> "dict[str, Any]":
        """Return a question of the daemon under an id that no other daemon has given.

        Each daemon counts from the same number: an answer to one must not be taken for another.
        """
        self._questions += 1
        name = f"toolfold:{self.number}:{self._questions}"
        self._asked[name] = message["id"]
        return {**message, "id": name}

    def withdrawal(self, message: "dict[str, Any]") -> "dict[str, Any]":
        """Return a notification that cancels a question, with the id that the client knows."""
        params = message.get("params") or {}
        for name, request_id in self._asked.items():
            if request_id == params.get("requestId"):
                return {**message, "params": {**params, "requestId": name}}
        return message

    def reply(self, message: "dict[str, Any]") -> "dict[str, Any] | None":
        """Return the client's answer as the daemon knows it; None if it did not ask."""
        name = message.get("id")
        if not isinstance(name, str) or name not in self._asked:
            return None
        return {**message, "id": self._asked.pop(name)}

    def open_questions(self) -> list[str]:
        """Return the ids of the questions that the client still has."""
        return list(self._asked)
