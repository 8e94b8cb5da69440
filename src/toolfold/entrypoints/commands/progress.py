"""What shows how far something is, on a terminal: a bar, and the line below a run."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

from toolfold.entrypoints.screen import is_terminal
from toolfold.entrypoints.terminal import bound, columns
from toolfold.errors import shown

_WIDTH: Final = 30
_SHORT: Final = 12
_BETWEEN_S: Final = 0.15
_SOON_S: Final = 0.5  # what ends before shows no line
_ERASE: Final = "\r\x1b[K"


class ProgressBar:
    """Draws on standard error; says nothing where that is no terminal."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._shown = ""

    def __enter__(self) -> "ProgressBar":
        """Begin; nothing is drawn yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line behind."""
        if self._shown:
            print(file=sys.stderr)

    def show(self, done: int, total: int, what: str = "") -> None:
        """Draw the bar, if it is another than before."""
        bar = _bar(done, total, _WIDTH)
        text = f"{bar} {done:,} of {total:,} {self._unit} {what[-40:]}".rstrip()
        if text != self._shown and sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._shown = text


class RunScreen:
    """Prints what a run prints as it does; below it, where a person looks, what it does now.

    Standard output gets what the code prints and nothing else. The line is drawn on standard error
    and is gone when the run has ended.
    """

    def __init__(self) -> None:
        # A guest's process may print in the context of another terminal.
        self._out, self._err = bound(sys.stdout), bound(sys.stderr)
        self._shares_terminal = is_terminal()
        self.has_line = is_terminal(sys.stderr)
        self.printed: list[str] = []
        self.is_closed = anyio.Event()
        """Set when nobody reads what is printed any more."""
        self._line = ""
        self._drawn = ""
        self._is_paused = False
        self._is_at_start = True
        self._began = time.monotonic()

    def print(self, text: str) -> None:
        """Print at once; nothing where nobody reads any more."""
        if self.is_closed.is_set():
            return
        self._erase()
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            self.is_closed.set()
        self.printed.append(text)
        self._is_at_start = text.endswith("\n")

    def note(self, done: float, total: float | None, note: str) -> None:
        """Take the call that begins, or how far the code says to be."""
        if total:
            bar = _bar(done, total, _SHORT)
            self._line = f"{bar} {done:,.10g} of {total:,.10g} {shown(note)}".rstrip()
        else:
            self._line = f"{shown(note)}"

    async def draw(self) -> None:
        """Keep the line up to date, until cancelled."""
        try:
            while True:
                await anyio.sleep(_BETWEEN_S)
                self._draw()
        finally:
            self._erase()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to who asks something."""
        self._is_paused = True
        self._erase()
        try:
            yield
        finally:
            self._is_paused = False

    def _draw(self) -> None:
        is_early = time.monotonic() - self._began < _SOON_S
        is_inside = self._shares_terminal and not self._is_at_start  # of a line of the program's
        if is_early or is_inside or self._is_paused or self._line == self._drawn:
            return
        self._err.write(f"{_ERASE}\x1b[2m{self._line[: columns() - 1]}\x1b[0m")
        self._err.flush()
        self._drawn = self._line

    def _erase(self) -> None:
        if self._drawn:
            self._err.write(_ERASE)
            self._err.flush()
            self._drawn = ""


def _bar(done: float, total: float, width: int) -> str:
    filled = min(width, max(0, int(width * done / total))) if total else width
    return "█" * filled + "░" * (width - filled)
