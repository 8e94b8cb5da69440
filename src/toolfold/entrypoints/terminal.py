"""The terminal that a command works for: that of this process, or one at the daemon's socket.

Commands print, read standard input and ask as any program does. Where the daemon runs one, its
standard streams are those of the terminal elsewhere, for that command alone.
"""

import io
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from toolfold.config.config import current_directory
from toolfold.errors import ConfigError

if TYPE_CHECKING:
    from toolfold.app import App
    from toolfold.catalog.questions import Elicitor
    from toolfold.config.config import Config

StreamName = Literal["stdout", "stderr"]
OnMemoryProgress = Callable[[int, int, str], None]

_USUAL_COLUMNS: Final = 80


class TerminalInterrupt(Exception):  # not an error: the person at the terminal wants it so
    """The person at a remote terminal pressed Control-C, or the terminal is gone."""


class RemoteTerminal(Protocol):
    """A terminal that is not this process's own."""

    @property
    def id(self) -> str:
        """Its name, for the length of one command."""
        ...

    @property
    def columns(self) -> int:
        """How wide it is; 0 where it is none."""
        ...

    @property
    def zone(self) -> tzinfo | None:
        """Its time zone; None where it is that of this process."""
        ...

    def is_tty(self, name: str) -> bool:
        """Whether a person is at one of its standard streams."""
        ...

    def write(self, name: StreamName, content: str | bytes) -> None:
        """Print there."""
        ...

    def read_line(self, *, hidden: bool = False) -> str:
        """Return what is typed there, with its end; "" when nothing more comes.

        What is `hidden` does not appear there while it is typed.
        """
        ...

    def read_input(self, path: str | None = None) -> bytes:
        """Return all of a file as that side sees it; of its standard input without a path.

        Raises:
            OSError: It cannot be read.
        """
        ...

    def browse(self, address: str) -> None:
        """Open an address in a browser there."""
        ...

    def with_app(self, config: "Config", action: "Callable[[App], Awaitable[int]]") -> int:
        """Do something with the app of a configuration that runs here already, or is started."""
        ...

    def config_of_run(self, run_id: str) -> "Config | None":
        """Return in which configuration a run of this process began; None where it is not known."""
        ...

    def ask_memory(
        self,
        config: "Config",
        namespace: str,
        verb: str,
        arguments: dict[str, Any],
        *,
        on_progress: OnMemoryProgress | None,
        elicitor: "Elicitor | None",
    ) -> Any:
        """Have a verb of memory done here, and return its answer as JSON."""
        ...


_remote: ContextVar[RemoteTerminal | None] = ContextVar("remote terminal", default=None)


def remote_terminal() -> RemoteTerminal | None:
    """Return the terminal that the code that asks works for; None for that of this process."""
    return _remote.get()


@contextmanager
def attached(terminal: RemoteTerminal) -> Iterator[None]:
    """Work for a terminal in this context, and in the threads and tasks that it starts."""
    token = _remote.set(terminal)
    try:
        yield
    finally:
        sys.stdout.flush()
        _remote.reset(token)


def local_time(at: float) -> datetime:
    """Return a moment in the time zone of who is at the terminal."""
    return datetime.fromtimestamp(at, tz=UTC).astimezone(local_zone())


def local_zone() -> tzinfo | None:
    """Return the time zone of who is at the terminal; None where it is that of this process."""
    terminal = _remote.get()
    return terminal.zone if terminal else None


def columns() -> int:
    """Return how wide the terminal is."""
    terminal = _remote.get()
    if terminal is not None:
        return terminal.columns or _USUAL_COLUMNS
    import shutil

    return shutil.get_terminal_size().columns


def read_file(path: str) -> bytes:
    """Return a file as the terminal sees it: it may be a pipe that only that side can open.

    Raises:
        ConfigError: It cannot be read.
    """
    terminal = _remote.get()
    try:
        if terminal is not None:
            return terminal.read_input(path)
        return (current_directory() / path).read_bytes()
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is a folder. Name a Python file.") from error
    except OSError as error:
        raise ConfigError(
            f"Cannot read {path}: {error.strerror or error}. Name a file that you can read."
        ) from error


def read_hidden(prompt: str) -> str:
    """Return what the person at the terminal types, which does not appear there; "" for no more."""
    terminal = _remote.get()
    if terminal is not None:
        print(prompt, end="", file=sys.stderr, flush=True)
        return terminal.read_line(hidden=True)
    from getpass import getpass

    try:
        return getpass(prompt, stream=sys.stderr)
    except EOFError:
        return ""


def open_browser(address: str) -> None:
    """Open an address in the browser of the person at the terminal."""
    terminal = _remote.get()
    if terminal is not None:
        terminal.browse(address)
        return
    import webbrowser

    webbrowser.open(address)


def absolute(path: str) -> str:
    """Return a path as the terminal means it, also for who is elsewhere."""
    return str(current_directory() / Path(path).expanduser())


def route_streams() -> None:
    """Have the standard streams of this process serve whichever terminal is worked for."""
    if isinstance(sys.stdout, _Output):
        return
    sys.stdout = _Output("stdout", sys.stdout)
    sys.stderr = _Output("stderr", sys.stderr)
    sys.stdin = _Input(sys.stdin)


def bound(stream: Any) -> Any:
    """Return a stream that threads of a library may write to, which know no terminal."""
    return stream.bound() if isinstance(stream, _Output) else stream


class _Output(io.TextIOBase):
    """Prints at the terminal that is worked for, or where this process prints."""

    def __init__(self, name: StreamName, own: Any, terminal: RemoteTerminal | None = None) -> None:
        self._name: StreamName = name
        self._own = own
        self._terminal = terminal

    def bound(self) -> "_Output":
        """Return the same for the terminal that is worked for now, whoever writes to it later."""
        return _Output(self._name, self._own, self._reached)

    @property
    def _reached(self) -> RemoteTerminal | None:
        return self._terminal or _remote.get()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def buffer(self) -> "_Bytes":
        """What takes bytes."""
        return _Bytes(self)

    def write(self, text: str) -> int:
        """Print; at a terminal line by line, elsewhere as much as comes."""
        terminal = self._reached
        if terminal is None:
            return int(self._own.write(text))
        if self._name == "stderr":
            sys.stdout.flush()
        terminal.write(self._name, text)
        return len(text)

    def write_bytes(self, content: bytes) -> None:
        """Print what is no text."""
        terminal = self._reached
        if terminal is None:
            self._own.buffer.write(content)
        else:
            terminal.write(self._name, content)

    def flush(self) -> None:
        """Have what was printed so far be seen."""
        terminal = self._reached
        if terminal is None:
            self._own.flush()
        else:
            terminal.write(self._name, "")

    def isatty(self) -> bool:
        """Whether a person sees it."""
        terminal = self._reached
        return bool(self._own.isatty()) if terminal is None else terminal.is_tty(self._name)

    def fileno(self) -> int:
        """Return our own descriptor; what a remote terminal has cannot be had."""
        if self._reached is not None:
            raise io.UnsupportedOperation("fileno")
        return int(self._own.fileno())

    def writable(self) -> bool:
        return True


class _Bytes(io.RawIOBase):
    """The same for bytes."""

    def __init__(self, output: _Output) -> None:
        self._output = output

    def write(self, content: Any) -> int:
        self._output.write_bytes(bytes(content))
        return len(content)

    def flush(self) -> None:
        self._output.flush()

    def writable(self) -> bool:
        return True


class _Input(io.TextIOBase):
    """Reads from the terminal that is worked for, or from our own standard input."""

    def __init__(self, own: Any) -> None:
        self._own = own

    @property
    def buffer(self) -> Any:
        """What gives bytes."""
        terminal = _remote.get()
        return self._own.buffer if terminal is None else io.BytesIO(terminal.read_input())

    def read(self, size: int | None = -1) -> str:
        """Return all that comes, or so many characters of it."""
        terminal = _remote.get()
        if terminal is None:
            return str(self._own.read(size))
        text = terminal.read_input().decode("utf-8", "surrogateescape")
        return text if size is None or size < 0 else text[:size]

    def readline(self, _size: int = -1) -> str:  # type: ignore[override]
        """Return what is typed next."""
        terminal = _remote.get()
        return str(self._own.readline()) if terminal is None else terminal.read_line()

    def isatty(self) -> bool:
        """Whether a person can type."""
        terminal = _remote.get()
        return bool(self._own.isatty()) if terminal is None else terminal.is_tty("stdin")

    def fileno(self) -> int:
        """Return our own descriptor."""
        if _remote.get() is not None:
            raise io.UnsupportedOperation("fileno")
        return int(self._own.fileno())

    def readable(self) -> bool:
        return True
