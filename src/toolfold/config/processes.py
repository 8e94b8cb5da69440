"""Whether a process is still the one that it was."""

import os
import sys
import time
from pathlib import Path
from typing import Final

_SLACK_S: Final = 2.0


def is_alive_since(process: int, moment: float) -> bool:
    """Whether a process that lived at a moment lives still; numbers are given to others later.

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
    started = _started_at(process)
    return started is None or started <= moment + _SLACK_S


def _started_at(process: int) -> float | None:
    """Return when a process began, where the system tells."""
    try:
        ticks = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return booted + ticks / os.sysconf("SC_CLK_TCK")
