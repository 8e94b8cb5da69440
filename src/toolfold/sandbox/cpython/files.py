"""Files that the host keeps, for guest code that opens them as it opens any file.

What opens files in C does not find them: there is nothing on the disk.
"""

import builtins
import errno
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final

from toolfold.sandbox.cpython.hostfile import FileHost, opened


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


_START: Final = "/workspace"
_ROOTS: Final = (_START, "/servers")
_DEVICE: Final = 0x746F6F6C  # of no disk
_SPECIAL_BITS: Final = 0o7000

# What the kernel does with a path, and the host does not.
_REFUSED: Final = (
    *("chown", "lchown", "link", "getxattr", "mkfifo", "mknod", "open", "pathconf"),
    *("readlink", "removexattr", "setxattr", "statvfs", "symlink"),
)


def install(host: FileHost) -> None:
    """Have the functions that take paths ask the host for what is its own."""
    files = _Files(host)
    wrapped = files.wrapped
    builtins.open = io.open = wrapped(builtins.open, files.open)
    ours: dict[str, Any] = {
        **dict.fromkeys(_REFUSED, files.refuse),
        **dict.fromkeys(("stat", "lstat"), files.stat),
        **dict.fromkeys(("unlink", "remove"), files.unlink),
        **dict.fromkeys(("rename", "replace"), files.rename),
        "listdir": files.listdir,
        "listxattr": lambda _path, **_: [],
        "scandir": files.scandir,
        "access": files.access,
        "mkdir": files.mkdir,
        "rmdir": files.rmdir,
        "truncate": files.truncate,
        "chmod": files.chmod,
        "utime": files.utime,
    }
    os.chdir = wrapped(files.leaving(os.chdir), files.enter)
    os.getcwd = files.here
    os.getcwdb = lambda: os.fsencode(files.here())
    for name, function in ours.items():
        setattr(os, name, wrapped(getattr(os, name), function))
    if shutil := sys.modules.get("shutil"):  # it would remove trees by descriptors
        shutil._use_fd_functions = False  # type: ignore[attr-defined]  # noqa: SLF001
    if pathlib := sys.modules.get("pathlib"):  # this too
        pathlib.Path.touch = wrapped(pathlib.Path.touch, files.touch)


class _Files:
    """Functions as the host does them. Each takes a path that is the host's."""

    def __init__(self, host: FileHost) -> None:
        self._host = host
        self._cwd: str | None = _START
        self._real_cwd = os.getcwd

    def wrapped(self, original: Any, ours: Callable[..., Any]) -> Any:
        """Return a function that does what `ours` does to paths of the host."""

        @wraps(original)
        def function(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            whole = self._path(path) if kwargs.get("dir_fd") is None else None
            if whole is None:
                return original(path, *args, **kwargs)
            return ours(whole, *args, **kwargs)

        return function

    def open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return opened(self._host, path, *args, **kwargs)

    def listdir(self, path: str) -> list[str]:
        return [name for name, *_ in self._host.ask("entries", path)]

    def scandir(self, path: str) -> Scan:
        found = self._host.ask("entries", path)
        return Scan(
            [ScanEntry(path, name, _result(f"{path}/{name}", *each)) for name, *each in found]
        )

    def stat(self, path: str, **_: Any) -> os.stat_result:
        return _result(path, *self._host.ask("stat", path))

    def access(self, path: str, mode: int, **_: Any) -> bool:
        try:
            is_dir = stat.S_ISDIR(self.stat(path).st_mode)
        except OSError:
            return False
        may_write = path.startswith(_START)
        return (may_write or not mode & os.W_OK) and (is_dir or not mode & os.X_OK)

    def touch(self, path: str, mode: int = 0o666, exist_ok: bool = True) -> None:  # noqa: ARG002
        try:
            self._host.ask("make", path)
        except FileExistsError:
            if not exist_ok:
                raise

    def mkdir(self, path: str, *_: Any, **__: Any) -> None:
        self._host.ask("mkdir", path)

    def unlink(self, path: str, **_: Any) -> None:
        self._host.ask("unlink", path)

    def rmdir(self, path: str, **_: Any) -> None:
        self._host.ask("rmdir", path)

    def rename(self, path: str, target: Any, **_: Any) -> None:
        outer = self._path(target)
        if outer is None:
            raise OSError(errno.EXDEV, "It cannot be moved there: copy it", path)
        self._host.ask("rename", path, target=outer)

    def truncate(self, path: str, length: int) -> None:
        self._host.ask("truncate", path, offset=length)

    def chmod(self, path: str, mode: int, **_: Any) -> None:
        """Change nothing: files here are the user's alone, and never programs."""
        if mode & _SPECIAL_BITS:
            raise PermissionError(errno.EPERM, "Set-id and sticky bits are refused", path)
        self.stat(path)

    def utime(self, path: str, *_: Any, **__: Any) -> None:
        """Change nothing: files tell when they were written."""
        self.stat(path)

    def refuse(self, path: str, *_: Any, **__: Any) -> Any:
        words = "The host keeps this file: only open() and its like can use it"
        raise PermissionError(errno.EPERM, words, path)

    def here(self) -> str:
        return self._cwd or self._real_cwd()

    def enter(self, path: str) -> None:
        if not stat.S_ISDIR(self.stat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        self._cwd = path

    def leaving(self, original: Any) -> Any:
        """Wrap the way to a directory that is on the disk."""

        @wraps(original)
        def chdir(path: Any) -> None:
            original(path)
            self._cwd = None

        return chdir

    def _path(self, given: Any) -> str | None:
        """Return a path that is the host's; None for others, and for descriptors."""
        if not isinstance(given, str | bytes | os.PathLike):
            return None
        text = os.fsdecode(given)
        if not text.startswith("/"):
            if self._cwd is None or not text:
                return None
            text = f"{self._cwd}/{text}"
        path = os.path.normpath(text).replace("//", "/")
        is_ours = any(path == root or path.startswith(f"{root}/") for root in _ROOTS)
        return path if is_ours else None


def _result(path: str, is_dir: bool, size: int, changed_at: float) -> os.stat_result:
    kind = stat.S_IFDIR | 0o700 if is_dir else stat.S_IFREG | 0o600
    number = zlib.crc32(path.encode("utf-8", "replace")) + 1  # who compares files goes by it
    when, exact = int(changed_at), int(changed_at * 1e9)
    times = (when, when, when, *[changed_at] * 3, *[exact] * 3)
    return os.stat_result((kind, number, _DEVICE, 1, os.getuid(), os.getgid(), size, *times))
