"""Ask the daemon for memory, and wait for the answer: for scripts, commands and hooks."""

import select
import time

from toolfold.relay.daemon import DaemonHandle
from toolfold.relay.link import DaemonLink
from toolfold.relay.wire import MAX_LINE, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Iterator, Mapping
    from typing import Any


class NoDaemon(Exception):
    """There is no daemon, or none could be started; the message says why."""


class Interrupted(Exception):
    """The daemon ended before it answered."""


class RequestTooLong(Exception):
    """What is asked does not fit into a line."""


class DaemonClient:
    """A connection to the daemon on which one question is asked at a time.

    The daemon is started if it does not run, and found again if it ended since the last question.
    """

    def __init__(
        self, context: "dict[str, Any]", environ: "Mapping[str, str]", *, kind: str = "verbs"
    ) -> None:
        self._link = DaemonLink(DaemonHandle(environ), context, environ, self, kind=kind)
        self._is_ready = False
        self._answers: list[dict[str, Any]] = []
        self._refusal: str | None = None
        self._asked = 0

    def ask(
        self, question: "dict[str, Any]", *, timeout_s: float | None = None
    ) -> "Iterator[dict[str, Any]]":
        """Give what the daemon says to a question, in order; the last part is the answer.

        Raises:
            NoDaemon: None could be reached; the question was not asked.
            Interrupted: It ended before it answered; whether it did what was asked is not known.
            TooLong: The question is; it was not asked.
            TimeoutError: It did not answer in time.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._be_ready(deadline)
        self._asked += 1
        line = encode({**question, "id": self._asked})
        if len(line) > MAX_LINE:
            raise RequestTooLong(f"{len(line):,} bytes are too many: {MAX_LINE:,} is the limit.")
        self._link.send(line)
        while True:
            part = self._next(deadline)
            # What could not be read has no id.
            if part.get("id") == self._asked or ("error" in part and part.get("id") is None):
                yield part
                if "value" in part or "error" in part:
                    return

    def close(self) -> None:
        """Leave the daemon."""
        self._link.close()
        self._is_ready = False

    def _be_ready(self, deadline: float | None) -> None:
        self._refusal = None
        self._receive_available()
        while not self._is_ready:
            if self._refusal is not None:
                raise NoDaemon(self._refusal)
            self._link.reach()
            self._wait(deadline)
        self._answers.clear()

    def _receive_available(self) -> None:
        """Notice that the daemon has gone since the last question."""
        while self._link.socket and _look_at(self._link.socket, patience_s=0)[0]:
            self._link.receive()

    def _next(self, deadline: float | None) -> "dict[str, Any]":
        while not self._answers:
            if not self._is_ready:
                raise Interrupted
            self._wait(deadline)
        return self._answers.pop(0)

    def _wait(self, deadline: float | None) -> None:
        """Wait until something happens, and take it in."""
        patience_s = self._link.patience_s
        if deadline is not None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                self.close()
                raise TimeoutError
            patience_s = left_s if patience_s is None else min(left_s, patience_s)
        link = self._link.socket
        if link is None:
            time.sleep(patience_s or 0)
        else:
            is_readable, is_writable = _look_at(
                link, is_writing=self._link.has_unsent, patience_s=patience_s
            )
            if is_writable:
                self._link.flush()
            if is_readable:
                self._link.receive()
        self._link.step()

    def lost_calls(self) -> list[str]:
        """Nothing is ever lost here: whoever asks is told."""
        return []

    def told_calls(self) -> list[str]:
        """Nor is anything told."""
        return []

    def greeted(self, _reports: "dict[str, Any]") -> None:
        """The daemon is ready."""
        self._is_ready = True

    def on_line(self, line: bytes) -> None:
        """The daemon said something."""
        self._answers.append(decode(line) or {})

    def parted(self) -> None:
        """The daemon is gone."""
        self._is_ready = False

    def gave_up(self, reason: str) -> None:
        """There is no daemon."""
        self._refusal = reason


def _look_at(
    link: "_socket.socket", *, is_writing: bool = False, patience_s: float | None
) -> tuple[bool, bool]:
    """Wait until a connection has something for us, or takes something; say which.

    A script may have more files open than `select` can count.
    """
    if not hasattr(select, "poll"):
        sinks = [link] if is_writing else []
        readable, writable, _ = select.select([link], sinks, [], patience_s)
        return bool(readable), bool(writable)
    poll = select.poll()
    poll.register(link, select.POLLIN | (select.POLLOUT if is_writing else 0))
    found = poll.poll(None if patience_s is None else patience_s * 1000)
    events = found[0][1] if found else 0
    return bool(events & ~select.POLLOUT), bool(events & select.POLLOUT)
