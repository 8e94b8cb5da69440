"""A bar that shows how far something is, on a terminal."""

import sys
from typing import Final

_WIDTH: Final = 30


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
        filled = _WIDTH * done // total if total else _WIDTH
        bar = "█" * filled + "░" * (_WIDTH - filled)
        text = f"{bar} {done:,} of {total:,} {self._unit} {what[-40:]}".rstrip()
        if text != self._shown and sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._shown = text
