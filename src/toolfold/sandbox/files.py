"""The interpreter's file operations, answered from `GuestFiles`; nothing of the disk is mounted."""

import errno
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic_monty import AbstractOS, MontyFileHandle, ScanEntry, StatResult

from toolfold.sandbox.drafts import Drafts
from toolfold.sandbox.sandbox import FileStatus, GuestFiles
from toolfold.sandbox.trees import named

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
