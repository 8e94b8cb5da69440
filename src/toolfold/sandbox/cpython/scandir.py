"""What `os.scandir` gives, of a directory that the host keeps."""

import os
import stat
from collections.abc import Iterator


class ScanEntry:
    """One entry of it."""

    def __init__(self, directory: str, name: str, status: os.stat_result) -> None:
        self.path = f"{directory}/{name}"
        self.name = name
        self._status = status

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        return stat.S_ISDIR(self._status.st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        return stat.S_ISREG(self._status.st_mode)

    def is_symlink(self) -> bool:
        return False

    def is_junction(self) -> bool:
        return False

    def inode(self) -> int:
        return self._status.st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        return self._status


class Scan:
    """The iterator over them."""

    def __init__(self, entries: list[ScanEntry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[ScanEntry]:
        return self._entries

    def __next__(self) -> ScanEntry:
        return next(self._entries)

    def __enter__(self) -> "Scan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of nothing."""
