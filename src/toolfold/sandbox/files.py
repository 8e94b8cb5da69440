"""The interpreter's file operations, answered from `GuestFiles`; nothing of the disk is mounted."""

import errno
import logging
import os
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import anyio
from pydantic_monty import AbstractOS, MontyFileHandle, ScanEntry, StatResult

from toolfold.sandbox.sandbox import FileDraft, FileStatus, GuestFiles
from toolfold.sandbox.trees import named

_log = logging.getLogger(__name__)

_MAX: Final = 32


class Drafts:
    """What one session has begun to write as a whole.

    A file is finished when the code closes it, when it looks at it again, or when its program ends,
    whichever way. What is written to it from then on goes into the file itself.
    """

    def __init__(self, files: GuestFiles) -> None:
        self._files = files
        self._drafts: dict[str, FileDraft] = {}
        self._lock = threading.RLock()  # a program that was stopped may have a thread at work

    @property
    def is_writing(self) -> bool:
        """Whether anything has been begun and not finished."""
        return bool(self._drafts)

    def settled(self, *paths: str) -> GuestFiles:
        """Return the files, once what is being written at these paths, or below, is finished."""
        with self._lock:
            for draft in list(self._drafts):
                if any(_is_at(path, draft) for path in paths):
                    self.finish(draft)
        return self._files

    def begin(self, path: str) -> None:
        """Begin a file anew."""
        with self._lock:
            if earlier := self._drafts.pop(path, None):
                earlier.discard()
            while len(self._drafts) >= _MAX:
                self.finish(next(iter(self._drafts)))
            self._drafts[path] = self._files.create(path)

    def write(self, path: str, content: bytes, offset: int | None = None) -> None:
        """Write to a file, begun or there."""
        with self._lock, named(path):
            if draft := self._drafts.get(path):
                draft.write(content, offset)
            else:
                self._files.write(path, content, offset)

    def truncate(self, path: str, size: int) -> None:
        """Give a file another length, begun or there."""
        with self._lock, named(path):
            if draft := self._drafts.get(path):
                draft.truncate(size)
            else:
                self._files.truncate(path, size)

    def finish(self, path: str) -> None:
        """Put a file in its place, if it has only been begun."""
        with self._lock, named(path):
            if draft := self._drafts.pop(path, None):
                draft.finish()

    def finish_all(self) -> None:
        """Put all of them in their places."""
        with self._lock:
            for path in list(self._drafts):
                try:
                    self.finish(path)
                except OSError as error:  # its directory may be gone
                    _log.info("A file of guest code was not kept: %s", error)


def _is_at(path: str, draft: str) -> bool:
    return draft == path or draft.startswith(f"{path.rstrip('/')}/")


_WHOLE_BYTES: Final = 16 << 20
_SCANNED: Final = 100_000


class MontyFiles(AbstractOS):
    """Answers file operations in the thread of a `Drive`.

    The interpreter reads files whole and appends what is written piece by piece; it tells neither
    when a file is closed nor which handle is meant.
    """

    def __init__(self, files: GuestFiles) -> None:
        self._drafts = Drafts(files)

    @property
    def is_writing(self) -> bool:
        """Whether there is anything to finish."""
        return self._drafts.is_writing

    def finish(self) -> None:
        """Finish what the program was writing."""
        self._drafts.finish_all()

    def path_exists(self, path: PurePosixPath) -> bool:
        return self._status(path) is not None

    def path_is_file(self, path: PurePosixPath) -> bool:
        status = self._status(path)
        return status is not None and not status.is_dir

    def path_is_dir(self, path: PurePosixPath) -> bool:
        status = self._status(path)
        return status is not None and status.is_dir

    def path_is_symlink(self, path: PurePosixPath) -> bool:  # noqa: ARG002
        return False

    def path_open(self, path: PurePosixPath, mode: str) -> MontyFileHandle:
        handle = MontyFileHandle(str(path), mode)
        match handle.mode[0]:
            case "w":
                self._drafts.begin(str(path))
            case "a" if self._status(path) is None:
                self._at(path).make(str(path))
            case _:
                self._file(path)
        return handle

    def path_read_text(self, path: PurePosixPath | MontyFileHandle) -> str:
        try:
            return self.path_read_bytes(path).decode()
        except UnicodeDecodeError as error:
            words = f"'{_path(path)}' is not text in UTF-8 (byte {error.start:,}): read it as bytes"
            raise ValueError(words) from error

    def path_read_bytes(self, path: PurePosixPath | MontyFileHandle) -> bytes:
        where = _path(path)
        size = self._file(where).size
        if size > _WHOLE_BYTES:
            words = (
                f"It has {size:,} bytes, of which {_WHOLE_BYTES:,} can be read at once. "
                "`import workspace`, then use workspace.records(path, start, limit), "
                "workspace.count(path) or workspace.read(path, offset, size)"
            )
            raise OSError(errno.EFBIG, words, str(where))
        return self._at(where).read(str(where), 0, size)

    def path_write_text(self, path: PurePosixPath | MontyFileHandle, data: str) -> int:
        self.path_write_bytes(path, _encoded(data))
        return len(data)

    def path_write_bytes(self, path: PurePosixPath | MontyFileHandle, data: bytes) -> int:
        where = str(_path(path))
        self._drafts.begin(where)
        self._drafts.write(where, data)
        self._drafts.finish(where)
        return len(data)

    def path_append_text(self, path: PurePosixPath | MontyFileHandle, data: str) -> int:
        self._drafts.write(str(_path(path)), _encoded(data))
        return len(data)

    def path_append_bytes(self, path: PurePosixPath | MontyFileHandle, data: bytes) -> int:
        self._drafts.write(str(_path(path)), data)
        return len(data)

    def path_mkdir(self, path: PurePosixPath, parents: bool, exist_ok: bool) -> None:
        if exist_ok and self.path_is_dir(path):
            return
        if parents:
            for above in reversed(path.parents):
                if not self.path_is_dir(above):
                    self._at(above).mkdir(str(above))
        self._at(path).mkdir(str(path))

    def path_unlink(self, path: PurePosixPath) -> None:
        self._at(path).unlink(str(path))

    def path_rmdir(self, path: PurePosixPath) -> None:
        self._at(path).rmdir(str(path))

    def path_iterdir(self, path: PurePosixPath) -> list[PurePosixPath]:
        return [path / name for name, _ in self._at(path).entries(str(path))]

    def path_scan(
        self, path: PurePosixPath, *, max_depth: int | None, **_hints: Any
    ) -> list[ScanEntry]:
        files = self._at(path)
        found = [_scanned("", files.stat(str(path)))]
        if found[0].is_dir:
            for entry in _scan(files, path, max_depth):
                found.append(entry)
                if len(found) > _SCANNED:
                    raise OSError(errno.EFBIG, f"More than {_SCANNED:,} files", str(path))
        return found

    def path_stat(self, path: PurePosixPath) -> StatResult:
        status = self._at(path).stat(str(path))
        if status.is_dir:
            return StatResult.dir_stat(0o700, mtime=status.changed_at)
        return StatResult.file_stat(status.size, 0o600, mtime=status.changed_at)

    def path_rename(self, path: PurePosixPath, target: PurePosixPath) -> None:
        self._at(path, target).rename(str(path), str(target))

    def path_resolve(self, path: PurePosixPath) -> str:
        return str(path)

    def path_absolute(self, path: PurePosixPath) -> str:
        return str(path)

    def getenv(self, key: str, default: str | None = None) -> str | None:  # noqa: ARG002
        return default

    def get_environ(self) -> dict[str, str]:
        return {}

    def _at(self, *paths: PurePosixPath) -> GuestFiles:
        return self._drafts.settled(*map(str, paths))

    def _status(self, path: PurePosixPath) -> FileStatus | None:
        try:
            return self._at(path).stat(str(path))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None

    def _file(self, path: PurePosixPath) -> FileStatus:
        status = self._at(path).stat(str(path))
        if status.is_dir:
            with named(str(path)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return status


def _scan(files: GuestFiles, path: PurePosixPath, max_depth: int | None) -> Iterator[ScanEntry]:
    pending = [("", 0)]
    while pending:
        above, depth = pending.pop()
        if max_depth is not None and depth >= max_depth:
            continue
        for name, status in files.entries(str(path / above)):
            relative = f"{above}/{name}" if above else name
            yield _scanned(relative, status)
            if status.is_dir:
                pending.append((relative, depth + 1))


def _scanned(path: str, status: FileStatus) -> ScanEntry:
    return ScanEntry(path, status.is_dir, not status.is_dir, False)


def _path(path: PurePosixPath | MontyFileHandle) -> PurePosixPath:
    return PurePosixPath(path.path) if isinstance(path, MontyFileHandle) else path


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


@dataclass(slots=True)
class _Queue:
    is_remote: bool
    turns: deque[anyio.Event] = field(default_factory=deque)


class Places:
    """So many at once; more wait.

    Whoever waits gets a place in turn with other callers, not behind all that one of them has
    begun. Remote callers, who hold a key, always leave some to the user of this machine.
    """

    def __init__(self, count: int) -> None:
        self._count = self._free = count
        self._free_for_remote = count - max(1, count // 4) if count > 1 else count
        self._queues: OrderedDict[str, _Queue] = OrderedDict()
        """Of callers who wait: none of them has room, and the first is the next."""

    @property
    def taken(self) -> int:
        """How many are held now."""
        return self._count - self._free

    @asynccontextmanager
    async def held(self, caller: str = "", *, is_remote: bool = False) -> AsyncIterator[None]:
        """Hold a place, waiting for one to be free."""
        if self._has_room(is_remote=is_remote):
            self._take(is_remote=is_remote)
        else:
            await self._wait(caller, is_remote=is_remote)
        try:
            yield
        finally:
            self._give_back(is_remote=is_remote)

    def _has_room(self, *, is_remote: bool) -> bool:
        return self._free > 0 and (not is_remote or self._free_for_remote > 0)

    def _take(self, *, is_remote: bool) -> None:
        self._free -= 1
        self._free_for_remote -= is_remote

    async def _wait(self, caller: str, *, is_remote: bool) -> None:
        turn = anyio.Event()
        queue = self._queues.setdefault(caller, _Queue(is_remote))
        queue.turns.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._give_back(is_remote=is_remote)
            else:
                queue.turns.remove(turn)
                if not queue.turns:
                    del self._queues[caller]
            raise

    def _give_back(self, *, is_remote: bool) -> None:
        self._free += 1
        self._free_for_remote += is_remote
        for caller, queue in self._queues.items():
            if self._has_room(is_remote=queue.is_remote):
                self._take(is_remote=queue.is_remote)
                queue.turns.popleft().set()
                self._queues.move_to_end(caller)
                if not queue.turns:
                    del self._queues[caller]
                return
