"""Whether a process is still the one that it was."""

import os
import sys
import time
from pathlib import Path
from typing import Final

_SLACK_S: Final = 2.0
_STATE: Final = 0
_START_TICKS: Final = 19
_DEAD: Final = frozenset({"Z", "X"})


def is_alive_since(process: int, moment: float) -> bool:
    """Whether a process that lived at a moment lives still; numbers are given to others later.

    One that was killed and not yet reaped by its parent still has its number, and is dead.
    Windows cannot be asked: there, signal 0 is Control-C.
    """
    if sys.platform == "win32":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    status = _status(process)
    if status is None:
        return True
    if status[_STATE] in _DEAD:
        return False
    started = _started_at(status)
    return started is None or started <= moment + _SLACK_S


def _status(process: int) -> list[str] | None:
    """Return what the kernel says of a process, from its state on, where it tells."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _started_at(status: list[str]) -> float | None:
    """Return when a process began, where the system tells."""
    try:
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return booted + int(status[_START_TICKS]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
