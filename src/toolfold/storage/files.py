"""Files of our own: private, read and written whole, locked, and kept within bounds."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import ConfigError

MAX_BYTES = 1024 * 1024

ReadFile: TypeAlias = Callable[[Path], bytes | None]
"""Reads as `read_file` does, or from what is known of a file."""


def read_file(path: Path, *, max_bytes: int | None = MAX_BYTES) -> bytes | None:
    """Return what a regular file holds, or None when there is no file.

    With None as `max_bytes` it may be of any size.

    Raises:
        ConfigError: It cannot be read, is no regular file, or is larger than `max_bytes`.
            The message leaves it to the caller to name the file.
    """
    try:
        # A repository we do not trust may hold a pipe, or a link to a device that never ends.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError("is not a regular file")
        with path.open("rb") as file:
            content = file.read(-1 if max_bytes is None else max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from error
    if max_bytes is not None and len(content) > max_bytes:
        raise ConfigError(f"is larger than {max_bytes} bytes")
    return content


def replace_file(path: Path, content: bytes, *, is_durable: bool = True) -> None:
    """Write a file of mode 0600 so that a reader sees the old content or the new, never a part.

    Several may write at the same time: the last one counts. What is not durable may be the old
    content again after the power failed, or none, and costs no wait for the disk.

    Raises:
        OSError: The directory cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_file(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 to the disk, unless there is one already: the first one counts.

    Raises:
        OSError: The directory cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    replace_file(temporary, content)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


def make_private(directory: Path) -> None:
    """Make a directory, and close it to other users (mode 0700) even if it exists already.

    Raises:
        OSError: It cannot be made, or belongs to someone else.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


def make_private_file(path: Path) -> None:
    """Make an empty file of mode 0600 in a private directory; one that is there gets the mode.

    It is never opened if it is there: closing it would drop the locks of this process on it.

    Raises:
        OSError: It cannot be made, or belongs to someone else.
    """
    make_private(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    path.chmod(0o600)


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


MAX_LOG_BYTES: Final = 5_000_000
BEFORE: Final = ".1"
CRASH: Final = ".crash"
"""The ends of the names of logs that are kept beside a log."""

DAY_S: Final = 86_400.0
_LEFT_OVER_S: Final = DAY_S


class FileKind(NamedTuple):
    """One kind of file below a directory of the user, and what bounds it.

    With `most` or `days` only the newest are kept, and only while they are used.
    """

    root: str
    pattern: str
    bound: str
    most: int | None = None
    days: float | None = None


def rotate_log(path: Path, max_bytes: int = MAX_LOG_BYTES) -> bool:
    """Move what a log holds to `<name>.1` once it is large; return whether it was.

    Whoever writes to it goes on, at its new beginning: it must have been opened to append. A line
    that is written at this very moment may be lost.
    """
    try:
        if path.stat().st_size <= max_bytes:
            return False
        _copy_end(path, path.with_name(f"{path.name}{BEFORE}"), max_bytes)
        os.truncate(path, 0)
    except OSError:
        return False
    return True


def keep_log(path: Path, suffix: str, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Keep the end of what a log holds as `<name><suffix>`, unless it is empty."""
    with suppress(OSError):
        if path.stat().st_size:
            _copy_end(path, path.with_name(f"{path.name}{suffix}"), max_bytes)


def _copy_end(path: Path, copy: Path, max_bytes: int) -> None:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - max_bytes))
        content = file.read(max_bytes)
    descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def sweep(root: Path, kind: FileKind, *, now: float | None = None) -> int:
    """Remove files of a kind that are too old or too many, the eldest first; return how many."""
    found = sorted(_files(root, kind.pattern), reverse=True)
    oldest = (time.time() if now is None else now) - (kind.days or 0) * DAY_S
    count = 0
    for number, (changed, path) in enumerate(found):
        is_old = kind.days is not None and changed < oldest
        if is_old or (kind.most is not None and number >= kind.most):
            count += _remove(path)
    return count


def sweep_leftovers(root: Path, *, now: float | None = None) -> int:
    """Remove files that a process which was killed left half written; return how many."""
    oldest = (time.time() if now is None else now) - _LEFT_OVER_S
    return sum(_remove(path) for at, path in _files(root, "**/.*.tmp") if at < oldest)


def _files(root: Path, pattern: str) -> list[tuple[float, Path]]:
    found = []
    for path in root.glob(pattern):
        with suppress(OSError):
            if not path.is_symlink() and path.is_file():
                found.append((path.stat().st_mtime, path))
    return found


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
