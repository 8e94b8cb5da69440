"""Work on a file ends when nobody waits for it, or when it takes too long."""

import io
import time
from collections.abc import Callable
from typing import Any, Final

from toolfold.errors import BadInput

SLICE_BYTES: Final = 1 << 11
"""What is read between two looks, unless more is asked for at once."""

_LIMIT_S: Final = 30.0
_STINT_S: Final = 0.001
_REST_S: Final = 0.000_1

Look = Callable[[], None]
"""Raises what is to end the work."""


def unwatched() -> None:
    """Let work go on for as long as it takes."""


def attentive(check: Look, limit_s: float = _LIMIT_S) -> Look:
    """Return what to call while working: it ends what `check` ends, and what takes too long.

    Python runs one thread at a time, so it also rests now and then; else whoever answers others
    would get its turn only every few milliseconds.
    """
    rested_at = time.monotonic()
    until = rested_at + limit_s

    def look() -> None:
        nonlocal rested_at
        check()
        now = time.monotonic()
        if now > until:
            raise BadInput(
                f"It took more than {limit_s:g} s. workspace.read(path, offset, size) reads any "
                "part of a file at once; work on it part by part."
            )
        if now - rested_at > _STINT_S:
            time.sleep(_REST_S)
            rested_at = time.monotonic()

    return look


class WatchedFile(io.FileIO):
    """A file that is read slice by slice, with a look before each."""

    def __init__(self, descriptor: int, look: Look) -> None:
        super().__init__(descriptor, "rb")
        self._look = look

    def readinto(self, buffer: Any) -> int:
        """Read on."""
        self._look()
        return super().readinto(buffer)
