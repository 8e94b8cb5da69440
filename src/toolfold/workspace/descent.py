"""Walk from a directory's descriptor, name by name, and open nothing but plain files.

Whoever can write to the directory may put anything there, and swap it at any time. So no path is
ever resolved by the system: each name is opened below the descriptor of its parent, links are not
followed, and what was opened is examined once more.
"""

import errno
import io
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from toolfold.errors import BadInput

NAME_BYTES: Final = 255
DEPTH: Final = 32
_SHOWN_CHARS: Final = 200
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def names_of(path: str) -> tuple[str, ...]:
    """Return the names on the way from the workspace to `path`; none for the workspace itself.

    Raises:
        OSError: The path leads outside, or has a name that no file may have.
    """
    if path.startswith("/"):
        raise refusal(errno.EACCES, "Paths begin in the workspace", path)
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if len(names) > DEPTH:
        words = f"Directories are nested {DEPTH} deep at most"
        raise refusal(errno.ENAMETOOLONG, words, path)
    for name in names:
        _check(name, path)
    return names


def _check(name: str, path: str) -> None:
    if name == "..":
        raise refusal(errno.EACCES, "Nothing leads out of the workspace", path)
    if _CONTROL.search(name):
        raise refusal(errno.EINVAL, "Names have no control characters", path)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise refusal(errno.EINVAL, "Names are Unicode text", path) from None
    if size > NAME_BYTES:
        words = f"Names have {NAME_BYTES} bytes at most, this one {size:,}"
        raise refusal(errno.ENAMETOOLONG, words, path)


def is_name(name: str) -> bool:
    """Whether a file may have this name; others have been put there by somebody else."""
    try:
        return names_of(name) == (name,)
    except OSError:
        return False


def refusal(number: int, words: str, path: str) -> OSError:
    """Return an error of the kind that `number` says, which a model can read."""
    shown = path if len(path) <= _SHOWN_CHARS else f"{path[:_SHOWN_CHARS]}…"
    return OSError(number, words, shown.encode("utf-8", "replace").decode())


def _flags(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)


_DIRECTORY: Final = _flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_FILE: Final = _flags("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY")
_SET_ID: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_GONE: Final = (FileNotFoundError, NotADirectoryError)  # or swapped for something else

FoundPath = tuple[tuple[str, ...], os.stat_result]
"""The names on the way to something, and what it is."""


class Status(NamedTuple):
    """What is known of a file or a directory without reading it."""

    is_dir: bool
    size: int
    changed_at: float


class DirectoryEntry(NamedTuple):
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


def walk(root: Path, wanted: Callable[[str], bool] = lambda _name: True) -> Iterator[FoundPath]:
    """Yield everything below a directory, parents first, down to where files may lie.

    What has no `wanted` name is passed over, with all that is in it. Each directory is opened once,
    below the one that it is in.
    """
    with suppress(*_GONE), descended(root, ()) as at:
        yield from _below(at, (), wanted)


def _below(at: int, names: tuple[str, ...], wanted: Callable[[str], bool]) -> Iterator[FoundPath]:
    for name, status in entries_of(at):
        if not wanted(name):
            continue
        here = (*names, name)
        yield here, status
        if stat.S_ISDIR(status.st_mode) and len(here) < DEPTH:
            with suppress(*_GONE), _directory(at, name) as below:
                yield from _below(below, here, wanted)


def check_height(at: int, name: str, depth: int, target: str) -> None:
    """Make sure that a directory may lie so deep, with all that is in it.

    Raises:
        OSError: It may not.
    """
    room = DEPTH - depth
    if _height(at, name, room + 1) > room:
        words = f"Directories are nested {DEPTH} deep at most, with what is in this one too"
        raise refusal(errno.ENAMETOOLONG, words, target)


def _height(at: int, name: str, most: int) -> int:
    """Return how many levels a directory is high, itself included; `most` of them are counted."""
    if most <= 1:
        return 1
    with _directory(at, name) as below, os.scandir(below) as found:
        levels = (
            _height(below, each.name, most - 1) if each.is_dir(follow_symlinks=False) else 1
            for each in found
        )
        return 1 + max(levels, default=0)


def clear(at: int, depth: int) -> Iterator[os.stat_result]:
    """Remove what is in a directory at this depth, and yield what each was when it is gone.

    Raises:
        OSError: It cannot be removed, or lies deeper than anything may.
    """
    for name, status in list(entries_of(at)):
        if depth >= DEPTH:
            words = f"What is in it is nested deeper than {DEPTH} levels: remove that by hand"
            raise OSError(errno.ENAMETOOLONG, words)
        if stat.S_ISDIR(status.st_mode):
            with _directory(at, name) as below:
                yield from clear(below, depth + 1)
            os.rmdir(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)
        yield status


@contextmanager
def _directory(at: int, name: str) -> Iterator[int]:
    below = os.open(name, _DIRECTORY, dir_fd=at)
    try:
        yield below
    finally:
        os.close(below)


def _odd(name: str) -> OSError:
    words = "Only plain files with one name are opened here, and this is something else"
    return refusal(errno.EPERM, words, name)


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
