"""The terminal's side of a command: words to the daemon, and what it prints back.

The daemon runs the command, where everything is warm and every server exists once. This process
lends it its standard streams, its directory and its environment, and ends with its exit status.
"""

import os
import select
import sys

from toolfold import __version__
from toolfold.relay.daemon import DaemonHandle
from toolfold.relay.link import DaemonLink
from toolfold.relay.manifest import base_environ
from toolfold.relay.paths import NoUsableDirectory
from toolfold.relay.wire import decode, encode, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

COMMANDS = frozenset(
    {"approve", "doctor", "memory", "policy", "reject", "run", "runs", "savings", "tools", "ui"}
)
"""What the daemon does for terminals."""

_WITHOUT = frozenset({"doctor", "memory", "policy", "runs", "savings", "tools"})
"""What can be done without a daemon, where none can be had: they run no code."""

_IN_PROCESS = frozenset({"-h", "--help", "--no-daemon"})
_NOT_OF_MEMORY = frozenset({"hook", "reembed"})
_STREAMS = {"stdout": 1, "stderr": 2}
_CHUNK = 524_288
_BROKEN_PIPE = 141
_FAILED = 2


def goes_by_daemon(words: "list[str]", environ: "Mapping[str, str]") -> bool:
    """Whether a command is one for the daemon, and nothing says otherwise."""
    if (
        not words
        or words[0] not in COMMANDS
        or environ.get("TOOLFOLD_NO_DAEMON", "0") not in {"", "0"}
    ):
        return False
    if words[0] == "memory" and _NOT_OF_MEMORY & set(words[1:2]):
        return False
    return not _IN_PROCESS & set(words)


def run_by_daemon(words: "list[str]", environ: "Mapping[str, str]") -> int | None:
    """Have the daemon run a command, started if it does not run; return the exit status.

    None where no daemon can be had, and the command can do without.
    """
    may_do_without = words[0] in _WITHOUT and "resume" not in words[1:2]
    try:
        cwd = os.getcwd()
    except OSError as error:
        print(f"toolfold: The current directory cannot be used: {error.strerror}.", file=sys.stderr)
        return _FAILED
    world: dict[str, Any] = {
        "cwd": cwd,
        "config": None,
        "set": [],
        "environ": base_environ(environ),
    }
    try:
        return _Command(words, world, environ, may_do_without=may_do_without).run()
    except _NoDaemon:
        return None
    except NoUsableDirectory as error:
        if may_do_without:
            return None
        print(f"toolfold: {error}", file=sys.stderr)
        return _FAILED
    except BrokenPipeError:
        return _BROKEN_PIPE


class _NoDaemon(Exception):
    """There is none, and the command can do without."""


class _Command:
    """One command that the daemon runs for us."""

    def __init__(
        self,
        words: "list[str]",
        world: "dict[str, Any]",
        environ: "Mapping[str, str]",
        *,
        may_do_without: bool,
    ) -> None:
        self._words = words
        self._may_do_without = may_do_without
        self._link = DaemonLink(DaemonHandle(environ), world, environ, self, kind="command")
        self._link.on_replace = _say_that_it_is_replaced
        self._status: int | None = None
        self._is_asked = False
        self._signals: list[int] = []
        self._told_signals = 0

    def run(self) -> int:
        """Wait for the end of the command, and print meanwhile what comes."""
        wakeful = self._catch_signals()
        self._link.reach()
        while self._status is None:
            link = self._link.socket
            sources: list[Any] = [wakeful] if link is None else [wakeful, link]
            sinks = [link] if link is not None and self._link.has_unsent else []
            readable, writable, _ = select.select(sources, sinks, [], self._link.patience_s)
            if wakeful in readable:
                os.read(wakeful, 64)
            if self._signals and not self._pass_on_signals():
                break
            if writable:
                self._link.flush()
            if link in readable:
                self._link.receive()
            self._link.step()
        self._link.close()
        if self._signals and self._status in {None, 130}:
            return 128 + self._signals[0]
        return self._status or 0

    def _catch_signals(self) -> int:
        """Note signals instead of ending; return a descriptor that wakes who waits."""
        import signal

        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _frame: self._signals.append(received))
        return ours

    def _pass_on_signals(self) -> bool:
        """Tell the daemon that we were interrupted; return False where nothing is to be awaited."""
        if self._told_signals == len(self._signals):
            return True
        is_first, self._told_signals = not self._told_signals, len(self._signals)
        if not is_first or not self._is_asked:
            return False
        self._link.send(encode({"interrupt": True}))
        return True

    def lost_calls(self) -> "list[str]":
        """Return what an earlier daemon left without an answer: our command."""
        return [self._link.client] if self._is_asked else []

    def told_calls(self) -> "list[str]":
        """Return none: what is lost ends the command."""
        return []

    def greeted(self, reports: "dict[str, Any]") -> None:
        """Ask for the command; or, where that was done already, say what is known of it."""
        if not self._is_asked:
            self._is_asked = True
            self._link.send(encode({"argv": self._words, "terminal": _streams()}))
            return
        report = reports.get(self._link.client) or {}
        words = report.get("text") or (
            "The daemon ended before this command did; its outcome is "
            "unknown. `toolfold logs` may show the reason."
        )
        self._fail(words)

    def on_line(self, line: bytes) -> None:
        """Do what the daemon says: print, read, end."""
        message = decode(line) or {}
        if "status" in message:
            self._status = int(message["status"])
        elif "read" in message:
            self._read(message)
        elif "browse" in message:
            import webbrowser

            webbrowser.open(message["browse"])
        for name, descriptor in _STREAMS.items():
            if name in message:
                write_all(descriptor, _content(message, name))

    def parted(self) -> None:
        """The daemon is gone: find another one that knows what became of the command."""
        if self._status is None:
            self._link.reach()

    def gave_up(self, reason: str) -> None:
        """There is no daemon."""
        if self._may_do_without and not self._is_asked:
            raise _NoDaemon
        self._fail(f"{reason}\n`--no-daemon` does it in this one process.")

    def _fail(self, words: str) -> None:
        print(f"toolfold: {words}", file=sys.stderr)
        self._status = _FAILED

    def _read(self, message: "dict[str, Any]") -> None:
        """Give what is typed, or what a file or our standard input holds."""
        import signal

        # Who waits for the keyboard or for a pipe is interrupted at once.
        noting = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            signal.signal(signal.SIGINT, _interrupt)  # from now on it raises, wherever we are
            signal.signal(signal.SIGTERM, _interrupt)
            if self._signals:
                return  # it came just before, and is passed on next
            if message["read"] == "line":
                self._give(sys.stdin.buffer.readline(), is_last=True)
            elif message["read"] == "hidden":
                from getpass import getpass

                self._give(getpass("", stream=sys.stderr).encode(), is_last=True)
            else:
                self._give_file(message.get("path"))
        except EOFError:
            self._give(b"", is_last=True)
        except OSError as error:
            self._link.send(encode({"error": error.strerror or str(error)}))
        except KeyboardInterrupt as interrupt:
            self._signals.append(interrupt.args[0])
            self._pass_on_signals()
        finally:
            for number, handler in noting.items():
                signal.signal(number, handler)

    def _give_file(self, path: "str | None") -> None:
        if path is None:
            self._give_all(sys.stdin.buffer)
            return
        with open(path, "rb") as file:
            self._give_all(file)

    def _give_all(self, file: "Any") -> None:
        while chunk := file.read(_CHUNK):
            self._give(chunk)
            self._drain()
        self._give(b"", is_last=True)

    def _give(self, content: bytes, *, is_last: bool = False) -> None:
        import binascii

        text = binascii.b2a_base64(content, newline=False).decode()
        self._link.send(encode({"content": text, "is_last": is_last}))

    def _drain(self) -> None:
        """Wait until the daemon has taken what we gave."""
        while self._link.has_unsent and self._link.socket is not None:
            select.select([], [self._link.socket], [])
            self._link.flush()


def _interrupt(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(number)


def _say_that_it_is_replaced(version: str) -> None:
    print(
        f"toolfold: The daemon was of toolfold {version}, and this is {__version__}: another is "
        "started, and the old one ends once it is unused.",
        file=sys.stderr,
    )


def _content(message: "dict[str, Any]", name: str) -> bytes:
    text: str = message[name]
    if not message.get("is_base64"):
        encoding = (sys.stdout if name == "stdout" else sys.stderr).encoding or "utf-8"
        return text.encode(encoding, "backslashreplace")
    import binascii

    return binascii.a2b_base64(text)


def _streams() -> "dict[str, Any]":
    """Say at which of our streams a person is, how wide the terminal is, and its time zone."""
    found: dict[str, Any] = {
        "stdin": os.isatty(0), "stdout": os.isatty(1), "stderr": os.isatty(2)
    }  # fmt: skip
    found["zone"] = os.environ.get("TZ", "")
    try:
        found["columns"] = os.get_terminal_size(1).columns
    except OSError:
        found["columns"] = 0
    return found
