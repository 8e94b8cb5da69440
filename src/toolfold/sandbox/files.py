"""Files that guest code can read: texts that the host makes up, and nothing of the disk."""

from pathlib import PurePosixPath
from typing import NoReturn

from pydantic_monty import AbstractOS, MontyFileHandle, StatResult

from toolfold.sandbox.sandbox import GuestFiles


class ReadOnlyFiles(AbstractOS):
    """Answers the interpreter's file operations from `GuestFiles`. Whatever changes is refused."""

    def __init__(self, files: GuestFiles) -> None:
        self._files = files

    def path_exists(self, path: PurePosixPath) -> bool:
        return self.path_is_dir(path) or self.path_is_file(path)

    def path_is_file(self, path: PurePosixPath) -> bool:
        return self._files.read(str(path)) is not None

    def path_is_dir(self, path: PurePosixPath) -> bool:
        return self._files.entries(str(path)) is not None

    def path_is_symlink(self, path: PurePosixPath) -> bool:  # noqa: ARG002
        return False

    def path_open(self, path: PurePosixPath, mode: str) -> MontyFileHandle:
        if set(mode) - set("rtb"):
            _refuse(path)
        self._text(path)
        return MontyFileHandle(str(path), mode)

    def path_read_text(self, path: PurePosixPath | MontyFileHandle) -> str:
        return self._text(_path(path))

    def path_read_bytes(self, path: PurePosixPath | MontyFileHandle) -> bytes:
        return self._text(_path(path)).encode()

    def path_iterdir(self, path: PurePosixPath) -> list[PurePosixPath]:
        entries = self._files.entries(str(path))
        if entries is None:
            if self.path_is_file(path):
                raise NotADirectoryError(f"Not a directory: '{path}'")
            raise _missing(path)
        return [path / name for name in entries]

    def path_stat(self, path: PurePosixPath) -> StatResult:
        if self.path_is_dir(path):
            return StatResult.dir_stat(0o555, mtime=0.0)
        return StatResult.file_stat(len(self._text(path).encode()), 0o444, mtime=0.0)

    def path_resolve(self, path: PurePosixPath) -> str:
        return str(path)

    def path_absolute(self, path: PurePosixPath) -> str:
        return str(path)

    def path_write_text(self, path: PurePosixPath | MontyFileHandle, data: str) -> int:  # noqa: ARG002
        _refuse(_path(path))

    def path_write_bytes(self, path: PurePosixPath | MontyFileHandle, data: bytes) -> int:  # noqa: ARG002
        _refuse(_path(path))

    def path_append_text(self, path: PurePosixPath | MontyFileHandle, data: str) -> int:  # noqa: ARG002
        _refuse(_path(path))

    def path_append_bytes(self, path: PurePosixPath | MontyFileHandle, data: bytes) -> int:  # noqa: ARG002
        _refuse(_path(path))

    def path_mkdir(self, path: PurePosixPath, parents: bool, exist_ok: bool) -> None:  # noqa: ARG002
        _refuse(path)

    def path_unlink(self, path: PurePosixPath) -> None:
        _refuse(path)

    def path_rmdir(self, path: PurePosixPath) -> None:
        _refuse(path)

    def path_rename(self, path: PurePosixPath, target: PurePosixPath) -> None:  # noqa: ARG002
        _refuse(path)

    def getenv(self, key: str, default: str | None = None) -> str | None:  # noqa: ARG002
        return default

    def get_environ(self) -> dict[str, str]:
        return {}

    def _text(self, path: PurePosixPath) -> str:
        text = self._files.read(str(path))
        if text is None:
            if self.path_is_dir(path):
                raise IsADirectoryError(f"Is a directory: '{path}'")
            raise _missing(path)
        return text


def _path(path: PurePosixPath | MontyFileHandle) -> PurePosixPath:
    return PurePosixPath(path.path) if isinstance(path, MontyFileHandle) else path


def _missing(path: PurePosixPath) -> FileNotFoundError:
    return FileNotFoundError(f"No such file: '{path}'. There is /servers, the tools as files.")


def _refuse(path: PurePosixPath) -> NoReturn:
    raise PermissionError(f"'{path}' cannot be written: there are only files to read here.")
