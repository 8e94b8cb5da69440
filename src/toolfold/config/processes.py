"""Whether a process is still the one that it was."""

import math
import os
import sys
import time
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

_SLACK_S: Final = 2.0
_STATE: Final = 0
_START_TICKS: Final = 19
_ID_BITS: Final = 22  # Linux gives no process a larger id
_BOOT_BITS: Final = 14
_TICKS_BITS: Final = 27
_DEAD: Final = frozenset({"Z", "X"})


def identity_of(process: int) -> int:
    """Return a number that tells a process from others that have its id, before and after it.

    It is made of the id, of the boot and of the ticks of the kernel at which the process began: no
    step of a clock changes it. Where the system does not tell these, it is the id.
    """
    status, boot = _status(process), _boot()
    if status is None or boot is None or len(status) <= _START_TICKS:
        return process
    ticks = int(status[_START_TICKS]) % (1 << _TICKS_BITS)
    return process | boot << _ID_BITS | ticks << (_ID_BITS + _BOOT_BITS)


def own_identity() -> int:
    """Return that of this process."""
    return _identity_once(os.getpid())


def is_alive(identity: int, moment: float) -> bool:
    """Whether the process of that identity lives; a plain id is one that lived at a moment."""
    process = identity & ((1 << _ID_BITS) - 1)
    if identity == process:
        return is_alive_since(process, moment)
    is_there = is_alive_since(process, math.inf)
    return is_there and identity_of(process) in {identity, process}


@lru_cache(maxsize=4)  # a fork has another id
def _identity_once(process: int) -> int:
    return identity_of(process)


@cache
def _boot() -> int | None:
    """Return what tells this boot of the machine from others, never 0."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
        return 1 + int(text[:8], 16) % ((1 << _BOOT_BITS) - 1)
    except (OSError, ValueError):
        return None


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
