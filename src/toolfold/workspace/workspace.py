"""Workspace: the files of one project, bounded, and with no way out of their directory."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from toolfold.storage.files import make_private, try_lock
from toolfold.workspace.descent import (
    SLICE_BYTES,
    DirectoryEntry,
    Look,
    Status,
    WatchedFile,
    check_height,
    clear,
    descended,
    entries_of,
    is_name,
    make_file,
    names_of,
    open_file,
    plain_status,
    refusal,
    status_at,
    unwatched,
    walk,
)
from toolfold.workspace.usage import (
    LockedUsage,
    Quota,
    SharedUsage,
    WorkspaceDraft,
    WorkspaceUsage,
    truncate_within,
    write_within,
)

READ_BYTES: Final = 64 << 20
"""The most that one read returns."""

_MEASURED: Final = 4  # times the quota: what is beyond is not even counted


class Workspace:
    """Reads and changes files; paths are relative to it, and may be hostile.

    What fails raises `OSError` with words that a model can act on. Everything here is synchronous,
    and may be used by several threads and processes at once.
    """

    def __init__(self, place: Path, quota: Quota) -> None:
        self.root = place / "workspace"
        self.quota = quota
        self._drafts = place / "drafts"
        self._usage = SharedUsage(place / "usage", quota, self._measure)

    # Reading

    def stat(self, path: str) -> Status:
        """Return the status of a file or directory."""
        if not names_of(path) and not self.root.exists():
            return Status(True, 0, 0.0)
        with self._parent(path) as (at, name):
            return status_at(at, name) if name else Status(True, 0, os.fstat(at).st_mtime)

    def entries(self, path: str = "") -> list[DirectoryEntry]:
        """Return the plain files and the directories in a directory, by name."""
        found: list[DirectoryEntry] = []
        if not names_of(path) and not self.root.exists():
            return found
        with self._directory(path) as at:
            for name, status in entries_of(at):
                plain = plain_status(status)
                if plain is not None and is_name(name):
                    found.append(DirectoryEntry(name, plain))
                if len(found) > self.quota.files:
                    break
        if len(found) > self.quota.files:
            raise OSError(errno.EFBIG, f"More than {self.quota.files:,} files are in it")
        return sorted(found)

    def read(self, path: str, offset: int = 0, size: int = READ_BYTES) -> bytes:
        """Return at most `size` bytes from `offset` on."""
        with self.opened(path) as file:
            return os.pread(file.fileno(), min(size, READ_BYTES), offset)

    @contextmanager
    def opened(self, path: str, look: Look = unwatched) -> Iterator[BinaryIO]:
        """Open a file to be read for the length of this context; `look` is called at each slice."""
        with self._parent(path) as (at, name):
            descriptor = open_file(at, _named(name, path), os.O_RDONLY)
        with BufferedReader(WatchedFile(descriptor, look), SLICE_BYTES) as file:
            yield file

    def usage(self) -> WorkspaceUsage:
        """Return how much it holds."""
        if not self.root.exists():
            return WorkspaceUsage(0, 0)
        with self._usage.changing() as held:
            return held.usage

    def files(self) -> Iterator[tuple[str, Status]]:
        """Yield the paths of all plain files, with their status."""
        for names, found in walk(self.root, is_name):
            status = plain_status(found)
            if status is not None and not status.is_dir:
                yield "/".join(names), status

    # Writing

    def create(self, path: str) -> WorkspaceDraft:
        """Begin a file that replaces any at `path` once it is finished."""
        *above, name = names_of(path) or ("",)
        _named(name, path)
        self._make()
        with self._parent(path) as (at, _):
            _size_if_there(at, name)

        def put(held: LockedUsage, drafts: int, draft: str) -> None:
            with self._descended(tuple(above), path) as parent:
                replaced = _size_if_there(parent, name)
                os.rename(draft, name, src_dir_fd=drafts, dst_dir_fd=parent)
            if replaced is not None:
                held.book(size=-replaced, files=-1)

        return WorkspaceDraft(self._drafts, self._usage, put)

    def write(self, path: str, content: bytes, offset: int | None = None) -> None:
        """Write into a file that is there, at `offset` or else at its end."""
        with self._changing(path) as (held, at, name), _open(at, name) as descriptor:
            write_within(held, descriptor, content, offset)

    def save(self, path: str, content: bytes) -> None:
        """Make a file of `content`, whole or not at all, and replace any that is there."""
        draft = self.create(path)
        try:
            draft.write(content)
        except OSError:
            draft.discard()
            raise
        draft.finish()

    def make(self, path: str) -> None:
        """Make an empty file where there is none."""
        with self._changing(path) as (held, at, name):
            held.need(files=1)
            os.close(make_file(at, name))
            held.book(files=1)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file off, or fill it up with zeros."""
        with self._changing(path) as (held, at, name), _open(at, name) as descriptor:
            truncate_within(held, descriptor, size)

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        with self._changing(path, errno.EEXIST) as (held, at, name):
            held.need(files=1)
            os.mkdir(name, 0o700, dir_fd=at)
            held.book(files=1)

    def unlink(self, path: str) -> None:
        """Remove a file, or anything else that is no directory; what links lead to stays."""
        with self._changing(path) as (held, at, name):
            found = os.stat(name, dir_fd=at, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                raise refusal(errno.EISDIR, os.strerror(errno.EISDIR), path)
            os.unlink(name, dir_fd=at)
            held.book(size=-_counted(found), files=-1)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        with self._changing(path, errno.EBUSY) as (held, at, name):
            os.rmdir(name, dir_fd=at)
            held.book(files=-1)

    def rename(self, path: str, target: str) -> None:
        """Give a file or directory another name; a file of that name is replaced."""
        *above, name = names_of(target) or ("",)
        _named(name, target, errno.EBUSY)
        with self._changing(path, errno.EBUSY) as (held, at, old):
            status = status_at(at, old)
            with self._descended(tuple(above), target) as parent:
                if status.is_dir and len(above) >= len(names_of(path)):
                    check_height(at, old, len(above), target)
                try:
                    replaced: Status | None = status_at(parent, name)
                except FileNotFoundError:
                    replaced = None
                if names_of(path) == names_of(target):
                    return
                os.rename(old, name, src_dir_fd=at, dst_dir_fd=parent)
            if replaced is not None:
                held.book(size=-replaced.size, files=-1)

    def remove(self, path: str) -> int:
        """Remove a file, or a directory with all that is in it; return how many of them."""
        start = names_of(path)
        if start and not self.stat(path).is_dir:
            self.unlink(path)
            return 1
        removed = 0
        with self._usage.changing() as held, self._directory(path) as at:
            for status in clear(at, len(start)):
                held.book(size=-_counted(status), files=-1)
                removed += 1
        if start:
            self.rmdir(path)
        return removed + len(start[:1])

    # What paths lead to

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the directory of what `path` names, and its name; none for the workspace itself."""
        *above, name = names_of(path) or ("",)
        with self._descended(tuple(above), path) as at:
            yield at, name

    @contextmanager
    def _directory(self, path: str) -> Iterator[int]:
        with self._descended(names_of(path), path) as at:
            yield at

    @contextmanager
    def _descended(self, names: tuple[str, ...], path: str) -> Iterator[int]:
        with told(path), descended(self.root, names) as at:
            yield at

    @contextmanager
    def _changing(
        self, path: str, for_itself: int = errno.EISDIR
    ) -> Iterator[tuple[LockedUsage, int, str]]:
        """Hold the counts, and yield them with the directory and the name that `path` means."""
        self._make()
        with self._usage.changing() as held, self._parent(path) as (at, name):
            yield held, at, _named(name, path, for_itself)

    def _make(self) -> None:
        if not self._drafts.exists() or not self.root.exists():
            for each in (self.root.parent, self.root, self._drafts):
                make_private(each)

    def _measure(self) -> WorkspaceUsage:
        """Count what is there, and clear away what the dead were writing."""
        self._clear_drafts()
        size = files = 0
        for place in (self.root, self._drafts):
            for _, found in walk(place):
                size, files = size + _counted(found), files + 1
                if files > _MEASURED * self.quota.files:
                    break
        return WorkspaceUsage(size, files)

    def _clear_drafts(self) -> None:
        with suppress(FileNotFoundError), descended(self._drafts, ()) as at:
            for name, found in list(entries_of(at)):
                if plain_status(found) and not stat.S_ISDIR(found.st_mode):
                    with _open(at, name) as descriptor:
                        if try_lock(descriptor):
                            os.unlink(name, dir_fd=at)


@contextmanager
def told(path: str) -> Iterator[None]:
    """Name what the caller named, in place of what was opened on the way."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _named(name: str, path: str, number: int = errno.EISDIR) -> str:
    if not name:
        raise refusal(number, os.strerror(number), path)
    return name


@contextmanager
def _open(at: int, name: str) -> Iterator[int]:
    descriptor = open_file(at, name, os.O_RDWR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _file_status(at: int, name: str) -> Status:
    status = status_at(at, name)
    if status.is_dir:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return status


def _size_if_there(at: int, name: str) -> int | None:
    try:
        return _file_status(at, name).size
    except FileNotFoundError:
        return None


def _counted(found: os.stat_result) -> int:
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


FOLDER: Final = "results"
_T = TypeVar("_T")


def save_result(workspace: Workspace, name: str, content: Iterable[bytes]) -> str:
    """Save a result whole and return its path. When room is needed, the oldest results go.

    Raises:
        OSError: There is no room, although no other result is left.
    """
    path = f"{FOLDER}/{name}"
    with suppress(FileExistsError):
        _with_room(workspace, partial(workspace.mkdir, FOLDER))
    draft = _with_room(workspace, partial(workspace.create, path))
    try:
        for chunk in content:
            _with_room(workspace, partial(draft.write, chunk))
        draft.finish()
    except BaseException:
        draft.discard()
        raise
    return path


def _with_room(workspace: Workspace, change: Callable[[], _T]) -> _T:
    """Make a change, removing old results as long as there is no room for it."""
    while True:
        try:
            return change()
        except OSError as error:
            if error.errno != errno.ENOSPC or not _remove_oldest(workspace):
                raise


def _remove_oldest(workspace: Workspace) -> bool:
    """Remove the oldest result; False if there is none."""
    try:
        found = workspace.entries(FOLDER)
    except OSError:
        return False
    files = [(status.changed_at, name) for name, status in found if not status.is_dir]
    if not files:
        return False
    with suppress(FileNotFoundError):  # another process was faster
        workspace.unlink(f"{FOLDER}/{min(files)[1]}")
    return True
