"""Locks between processes, on open files; they go with the file's last descriptor."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

PATIENCE_S: Final = 5.0
"""How long to wait for another process, where nobody else has to wait with us."""

_POLL_S: Final = 0.01


def wait_for_lock(descriptor: int) -> None:
    """Wait until the lock is ours. Where there are no such locks, it is at once."""
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Take the lock unless somebody has it; return whether it is ours."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@contextmanager
def locked(path: Path, patience_s: float | None = PATIENCE_S) -> Iterator[None]:
    """Hold `<path>.lock`, so that one process at a time does what it is for.

    With None as patience it is waited for as long as it takes.

    Raises:
        TimeoutError: Another has held it all the time.
    """
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        if patience_s is None:
            wait_for_lock(lock.fileno())
        else:
            _wait_until(lock.fileno(), time.monotonic() + patience_s)
        yield


def _wait_until(descriptor: int, deadline: float) -> None:
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError("another process has held its lock for too long")
        time.sleep(_POLL_S)
