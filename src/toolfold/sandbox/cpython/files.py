"""Files that the host makes up, for guest code that opens them as it opens any file.

What is on the disk comes first; the host is asked for what is not there.
"""

import builtins
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, Final

_ROOT: Final = "/servers"

# Every one of them takes a path first.
_CHANGING: Final = ("chmod", "mkdir", "remove", "rename", "replace", "rmdir", "truncate", "unlink")

Ask = Callable[[str, str], Any]
"""`entries` or `read`, and a path: the names, the text, or None."""


def install(ask: Ask) -> None:
    """Put the host's files behind those of the disk."""
    made_up = _MadeUp(ask)
    builtins.open = io.open = made_up.opening(builtins.open)
    os.listdir = made_up.listing(os.listdir)
    os.scandir = made_up.scanning(os.scandir)
    os.stat = made_up.stating(os.stat)
    for name in _CHANGING:
        setattr(os, name, made_up.refusing(getattr(os, name)))


def _path(given: Any) -> str | None:
    """Return a path that may be the host's: where it has files, and not a descriptor."""
    if isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        if isinstance(text, str) and text.startswith("/"):
            path = os.path.normpath(text)
            return path if path == _ROOT or path.startswith(f"{_ROOT}/") else None
    return None


class _MadeUp:
    """Wraps what opens, lists and examines files."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def opening(self, original: Any) -> Any:
        """Wrap `open`."""

        def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: A001
            try:
                return original(file, mode, *args, **kwargs)
            except OSError:
                path = _path(file)
                if path is None:
                    raise
                text = self._read(path, mode)
                if text is None:
                    raise
            content = io.BytesIO(text.encode())
            return content if "b" in mode else io.TextIOWrapper(content, encoding="utf-8")

        return open

    def listing(self, original: Any) -> Any:
        """Wrap `os.listdir`."""

        def listdir(path: Any = ".") -> Any:
            try:
                return original(path)
            except OSError:
                entries = self._entries(path)
                if entries is None:
                    raise
                return entries

        return listdir

    def scanning(self, original: Any) -> Any:
        """Wrap `os.scandir`."""

        def scandir(path: Any = ".") -> Any:
            try:
                return original(path)
            except OSError:
                entries = self._entries(path)
                if entries is None:
                    raise
                return _Scan([_Entry(os.path.join(path, name)) for name in entries])

        return scandir

    def stating(self, original: Any) -> Any:
        """Wrap `os.stat`."""

        def examine(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
            try:
                found: os.stat_result = original(path, *args, **kwargs)
            except OSError:
                mode, size = self._kind(_path(path))
                if not mode:
                    raise
                found = os.stat_result((mode, 0, 0, 1, 0, 0, size, 0, 0, 0))
            return found

        examine.__name__ = "stat"
        return examine

    def refusing(self, original: Any) -> Any:
        """Wrap what would change a file."""

        def refuse(path: Any, *args: Any, **kwargs: Any) -> Any:
            if (whole := _path(path)) is not None:
                raise _not_permitted(whole)
            return original(path, *args, **kwargs)

        refuse.__name__ = original.__name__
        return refuse

    def _read(self, path: str, mode: str) -> str | None:
        if set(mode) - set("rtb"):
            raise _not_permitted(path)
        text: str | None = self._ask("read", path)
        if text is None and self._ask("entries", path) is not None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return text

    def _entries(self, path: Any) -> list[str] | None:
        whole = _path(path)
        return self._ask("entries", whole) if whole else None

    def _kind(self, path: str | None) -> tuple[int, int]:
        if path is None:
            return 0, 0
        if self._ask("entries", path) is not None:
            return stat.S_IFDIR | 0o555, 0
        text = self._ask("read", path)
        return (0, 0) if text is None else (stat.S_IFREG | 0o444, len(text.encode()))


def _not_permitted(path: str) -> PermissionError:
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


class _Entry:
    """One entry of a directory, as `os.scandir` gives it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        return os.path.isdir(self.path)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002
        return os.path.isfile(self.path)

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        return os.stat(self.path)


class _Scan:
    """The iterator that `os.scandir` gives."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> "_Scan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of nothing."""
