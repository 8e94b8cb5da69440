"""Servers that outlived a process of ours which was killed.

A server sees its input end when we die, and ends too. One that is stuck in a call does not look. So
every server carries in its environment who started it, and the next daemon ends those whose owner
is gone. Only where `/proc` tells of processes.
"""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio

_log = logging.getLogger(__name__)

MARK: Final = "TOOLFOLD_OWNER"
_GRACE_S: Final = 2.0


def owner() -> str:
    """Return what names this process and no other, however often its number is given again."""
    return f"{os.getpid()}:{_born(os.getpid())}"


async def end_orphans() -> None:
    """Ask the orphans to end, and make those that do not."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for pid in list(_orphans()):
            _log.warning("Process %d outlived the toolfold that started it: ending it.", pid)
            try:
                os.kill(pid, kind)
            except (ProcessLookupError, PermissionError):
                continue
        await anyio.sleep(_GRACE_S)


def _orphans() -> Iterator[int]:
    prefix = f"{MARK}=".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            pairs = environ.read_bytes().split(b"\0")
        except OSError:
            continue  # gone meanwhile, or somebody else's
        for pair in pairs:
            if pair.startswith(prefix) and not _lives(pair[len(prefix) :].decode(errors="replace")):
                yield int(environ.parent.name)


def _lives(named: str) -> bool:
    pid, _, born = named.partition(":")
    return not pid.isdigit() or _born(int(pid)) == born


def _born(pid: int) -> str:
    """Return when a process began, in the kernel's ticks; "" when it is not there."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
