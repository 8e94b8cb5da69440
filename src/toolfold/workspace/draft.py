"""A file that is being written, and that nobody sees until it is finished."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from toolfold.storage.locks import try_lock
from toolfold.workspace.descent import descended, make_file
from toolfold.workspace.usage import LockedUsage, SharedUsage

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
