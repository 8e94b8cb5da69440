"""How much a workspace holds, counted at every change, and drafts that count towards it."""

import errno
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.config.settings import Limits
from toolfold.storage.files import make_private, try_lock, wait_for_lock
from toolfold.workspace.descent import descended, make_file

_RECORD: Final = struct.Struct("<QQ")
_FULL_HINT: Final = "remove what is not needed: workspace.list(), workspace.remove(path)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much a workspace may hold."""

    bytes: int
    files: int
    """Directories count."""
    file_bytes: int
    """In one file."""

    @classmethod
    def of(cls, limits: Limits) -> "Quota":
        """Return what the limits of a configuration allow."""
        return cls(
            bytes=limits.workspace_bytes, files=limits.workspace_files, file_bytes=limits.file_bytes
        )


class WorkspaceUsage(NamedTuple):
    """How much it holds."""

    bytes: int
    files: int


class LockedUsage:
    """The counts while they are locked; what is booked here is kept."""

    def __init__(self, usage: WorkspaceUsage, quota: Quota) -> None:
        self._bytes, self._files = usage
        self._quota = quota

    @property
    def usage(self) -> WorkspaceUsage:
        """Return the counts as they are now."""
        return WorkspaceUsage(max(0, self._bytes), max(0, self._files))

    def need(self, *, size: int = 0, files: int = 0) -> None:
        """Make sure that there is room for so much more.

        Raises:
            OSError: There is not.
        """
        quota = self._quota
        if size > 0 and self._bytes + size > quota.bytes:
            words = f"The workspace is limited to {quota.bytes:,} bytes, and has {self._bytes:,}"
            raise OSError(errno.ENOSPC, f"{words}: {_FULL_HINT}")
        if files > 0 and self._files + files > quota.files:
            words = f"The workspace is limited to {quota.files:,} files and directories"
            raise OSError(errno.ENOSPC, f"{words}: {_FULL_HINT}")

    def fit(self, size: int) -> None:
        """Make sure that one file may be so large.

        Raises:
            OSError: It may not.
        """
        if size > self._quota.file_bytes:
            words = f"One file may hold {self._quota.file_bytes:,} bytes: write several"
            raise OSError(errno.EFBIG, words)

    def book(self, *, size: int = 0, files: int = 0) -> None:
        """Count what was added or, if negative, removed."""
        self._bytes += size
        self._files += files


class SharedUsage:
    """The counts in a file beside the workspace, changed under a lock.

    Whoever changes files holds the lock meanwhile, so nobody sees counts that are not true. Files
    are measured once when a process first changes something: a process that was killed may have
    left the counts behind, and people put files there by themselves.
    """

    def __init__(self, path: Path, quota: Quota, measure: Callable[[], WorkspaceUsage]) -> None:
        self._path = path
        self._quota = quota
        self._measure = measure
        self._is_measured = False
        self._threads = threading.Lock()

    @contextmanager
    def changing(self) -> Iterator[LockedUsage]:
        """Hold the counts for the length of this context."""
        with self._threads, self._locked() as descriptor:
            usage = self._read(descriptor)
            held = LockedUsage(usage, self._quota)
            try:
                yield held
            finally:
                if held.usage != usage:
                    os.pwrite(descriptor, _RECORD.pack(*held.usage), 0)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            make_private(self._path.parent)
            descriptor = os.open(self._path, flags, 0o600)
            self._is_measured = False
        try:
            wait_for_lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> WorkspaceUsage:
        record = os.pread(descriptor, _RECORD.size, 0)
        if self._is_measured and len(record) == _RECORD.size:
            return WorkspaceUsage(*_RECORD.unpack(record))
        usage = self._measure()
        os.pwrite(descriptor, _RECORD.pack(*usage), 0)
        self._is_measured = True
        return usage


_NAME_BYTES: Final = 8


class WorkspaceDraft:
    """One such file. It counts against the quota from its first byte."""

    def __init__(
        self, place: Path, usage: SharedUsage, put: Callable[[LockedUsage, int, str], None]
    ) -> None:
        self._place = place
        self._usage = usage
        self._put = put
        self._name = os.urandom(_NAME_BYTES).hex()
        with usage.changing() as held, descended(place, ()) as at:
            held.need(files=1)
            self._descriptor = make_file(at, self._name)
            try_lock(self._descriptor)  # as long as it is held, its writer lives
            held.book(files=1)

    @property
    def is_open(self) -> bool:
        """Whether it is neither finished nor discarded."""
        return self._descriptor >= 0

    def write(self, content: bytes, offset: int | None = None) -> None:
        """Write at `offset`, by default at the end.

        Raises:
            OSError: There is no room for it.
        """
        with self._usage.changing() as held:
            write_within(held, self._descriptor, content, offset)

    def truncate(self, size: int) -> None:
        """Cut it off, or fill it up with zeros.

        Raises:
            OSError: There is no room for it.
        """
        with self._usage.changing() as held:
            truncate_within(held, self._descriptor, size)

    def finish(self) -> None:
        """Put it in its place, whatever file was there before.

        Raises:
            OSError: It cannot be put there; then it is discarded.
        """
        try:
            with self._usage.changing() as held, descended(self._place, ()) as at:
                self._put(held, at, self._name)
        except OSError:
            self.discard()
            raise
        self._close()

    def discard(self) -> None:
        """Remove it."""
        if not self.is_open:
            return
        with self._usage.changing() as held, descended(self._place, ()) as at:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=at)
            held.book(size=-os.fstat(self._descriptor).st_size, files=-1)
        self._close()

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1


def write_within(held: LockedUsage, descriptor: int, content: bytes, offset: int | None) -> None:
    """Write to an open file what there is room for in all, or nothing.

    Raises:
        OSError: There is no room.
    """
    before = os.fstat(descriptor).st_size
    start = before if offset is None else offset
    end = start + len(content)
    held.fit(end)
    held.need(size=end - before)
    rest = memoryview(content)
    try:
        while rest:
            written = os.pwrite(descriptor, rest, start)
            start, rest = start + written, rest[written:]
    finally:
        held.book(size=os.fstat(descriptor).st_size - before)


def truncate_within(held: LockedUsage, descriptor: int, size: int) -> None:
    """Give an open file another length.

    Raises:
        OSError: There is no room.
    """
    before = os.fstat(descriptor).st_size
    held.fit(size)
    held.need(size=size - before)
    os.ftruncate(descriptor, size)
    held.book(size=size - before)
