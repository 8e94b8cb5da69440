"""The way from a relay to the daemon: find it or start it, greet it, notice when it is gone."""

import os
import time

from toolfold import __version__
from toolfold.relay.daemon import Daemon
from toolfold.relay.wire import WIRE, Lines, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping
    from typing import Any, Protocol

    class Owner(Protocol):
        """Whoever uses a link, and is told what happens to it."""

        def lost_calls(self) -> list[str]:
            """Return the calls that earlier daemons left without an answer."""
            ...

        def greeted(self, reports: dict[str, Any]) -> None:
            """The daemon is ready; it says what it knows of the lost calls."""
            ...

        def heard(self, line: bytes) -> None:
            """The daemon said something."""
            ...

        def parted(self) -> None:
            """The daemon is gone."""
            ...

        def gave_up(self, reason: str) -> None:
            """There is no daemon, and this is why."""
            ...


_CHUNK = 65_536
_POLL_S = 0.02
_START_S = 60.0
_GREETING_S = 60.0
_STARTS = 2

_AWAY, _STARTING, _GREETING, _OPEN = range(4)


class Link:
    """A connection to the daemon, or the attempt to have one."""

    def __init__(
        self, daemon: Daemon, world: "dict[str, Any]", environ: "Mapping[str, str]", owner: "Owner"
    ) -> None:
        self.client = os.urandom(8).hex()
        """Our name at the daemon, whichever it is."""
        self.socket: _socket.socket | None = None
        self._daemon = daemon
        self._world = world
        self._environ = environ
        self._owner = owner
        self._lines = Lines()
        self._phase = _AWAY
        self._deadline = 0.0
        self._starts = 0

    @property
    def is_away(self) -> bool:
        """Whether there is no daemon, and no attempt to reach one."""
        return self._phase == _AWAY

    @property
    def patience_s(self) -> float | None:
        """How long to wait for something to happen before the next `step`."""
        if self._phase == _STARTING:
            return _POLL_S
        return 1.0 if self._phase == _GREETING else None

    def reach(self) -> None:
        """Begin to reach the daemon, unless that has begun."""
        if self._phase == _AWAY:
            self._starts = 0
            self._phase = _STARTING
            self._deadline = time.monotonic() + _START_S
            self.step()

    def step(self) -> None:
        """Go on towards the daemon, if we are on the way."""
        if self._phase == _STARTING:
            self._try()
        if self._phase in {_STARTING, _GREETING} and time.monotonic() > self._deadline:
            self._give_up(self._no_daemon("did not answer in time"))

    def send(self, content: bytes) -> None:
        """Send to the daemon. If it is gone, the owner is told."""
        assert self.socket is not None  # noqa: S101
        try:
            self.socket.sendall(content)
        except OSError:
            self._part()

    def hear(self) -> None:
        """Take in what the daemon sent."""
        assert self.socket is not None  # noqa: S101
        try:
            chunk = self.socket.recv(_CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            self._part()
            return
        for line in self._lines.feed(chunk):
            if self._phase == _GREETING:
                self._hear_greeting(decode(line) or {})
            elif self._phase == _OPEN:
                self._owner.heard(line)

    def _try(self) -> None:
        found = self._daemon.connect()
        if found is not None:
            self._greet(*found)
        elif self._starts < _STARTS:
            self._starts += self._daemon.start()
        elif not self._daemon.is_locked():
            self._give_up(self._no_daemon("ended as soon as it was started"))

    def _greet(self, link: "_socket.socket", token: str) -> None:
        self.socket = link
        self._lines = Lines()
        self._phase = _GREETING
        self._deadline = time.monotonic() + _GREETING_S
        about = {"wire": WIRE, "version": __version__, "token": token, "pid": os.getpid()}
        self.send(encode({**about, "kind": "mcp", "client": self.client, **self._world}))

    def _hear_greeting(self, message: "dict[str, Any]") -> None:
        if "error" in message:
            self._give_up(str(message["error"]))
        elif "needs" in message:
            self._present(message)
        elif "ready" in message:
            self._phase = _OPEN
            self._owner.greeted(message.get("lost") or {})

    def _present(self, greeting: "dict[str, Any]") -> None:
        """Give the variables that the configuration names; have an older daemon replaced."""
        if _number(greeting.get("version")) < _number(__version__):
            self.send(encode({"drain": True}))
            self._close()
            self._phase = _STARTING
            self._starts = 0
            return
        variables = {
            name: self._environ[name] for name in greeting["needs"] if name in self._environ
        }
        self.send(encode({"environ": variables, "lost": self._owner.lost_calls()}))

    def _part(self) -> None:
        """The daemon is gone. One that went while it was greeted is sought again."""
        was_open = self._phase == _OPEN
        self._close()
        self._phase = _AWAY if was_open else _STARTING
        if was_open:
            self._owner.parted()

    def _give_up(self, reason: str) -> None:
        self._close()
        self._phase = _AWAY
        self._owner.gave_up(reason)

    def _close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

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
