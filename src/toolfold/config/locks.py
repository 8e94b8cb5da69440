"""Locks between processes, on open files; they go with the file's last descriptor."""

import sys

if sys.platform != "win32":
    import fcntl


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
