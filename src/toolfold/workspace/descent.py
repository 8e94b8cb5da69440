"""Walk from a directory's descriptor, name by name, and open nothing but plain files.

Whoever can write to the directory may put anything there, and swap it at any time. So no path is
ever resolved by the system: each name is opened below the descriptor of its parent, links are not
followed, and what was opened is examined once more.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.workspace.names import refusal


def _flags(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)


_DIRECTORY: Final = _flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_FILE: Final = _flags("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY")
_SET_ID: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


class Status(NamedTuple):
    """What is known of a file or a directory without reading it."""

    is_dir: bool
    size: int
    changed_at: float


class Entry(NamedTuple):
    """One name in a directory."""

    name: str
    status: Status


def plain_status(found: os.stat_result) -> Status | None:
    """Return what there is to know of a plain file or a directory; None for anything else."""
    if stat.S_ISDIR(found.st_mode):
        return Status(True, 0, found.st_mtime)
    is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    if not is_plain or found.st_mode & _SET_ID:
        return None
    return Status(False, found.st_size, found.st_mtime)


@contextmanager
def descended(root: Path, names: tuple[str, ...]) -> Iterator[int]:
    """Yield a descriptor of the directory that `names` lead to.

    Raises:
        OSError: One of them is missing, or is no directory.
    """
    if os.open not in os.supports_dir_fd:
        raise OSError(errno.ENOSYS, "This system cannot keep paths within a directory")
    at = os.open(root, _DIRECTORY)
    try:
        for name in names:
            below = os.open(name, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def status_at(at: int, name: str) -> Status:
    """Return the status of a plain file or directory.

    Raises:
        OSError: It is not there, or is something else.
    """
    status = plain_status(os.stat(name, dir_fd=at, follow_symlinks=False))
    if status is None:
        raise _odd(name)
    return status


def open_file(at: int, name: str, flags: int) -> int:
    """Open a plain file that is there.

    Raises:
        OSError: It is not there, or is something else.
    """
    if status_at(at, name).is_dir:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    descriptor = os.open(name, flags | _FILE, dir_fd=at)
    status = plain_status(os.fstat(descriptor))
    if status is None or status.is_dir:  # it was swapped meanwhile
        os.close(descriptor)
        raise _odd(name)
    return descriptor


def make_file(at: int, name: str) -> int:
    """Make a file that was not there, and open it to be written.

    Raises:
        OSError: Something of that name is there.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE
    return os.open(name, flags, 0o600, dir_fd=at)


def entries_of(at: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is in a directory, odd things included."""
    with os.scandir(at) as found:
        for each in found:
            try:
                yield each.name, each.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # it was removed meanwhile


def walk(root: Path) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    """Yield everything below a directory, parents first."""
    pending: list[tuple[str, ...]] = [()]
    while pending:
        names = pending.pop()
        try:
            with descended(root, names) as at:
                found = list(entries_of(at))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for name, status in found:
            yield (*names, name), status
            if stat.S_ISDIR(status.st_mode):
                pending.append((*names, name))


def _odd(name: str) -> OSError:
    words = "Only plain files with one name are opened here, and this is something else"
    return refusal(errno.EPERM, words, name)
