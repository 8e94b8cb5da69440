"""Read and replace files that belong to other programs, or only pretend to."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from toolfold.errors import ConfigError
from toolfold.storage.files import read_file

# Claude Code keeps a history of every project in the file that names its servers.
MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Files:
    """Files on disk; with `dry_run` all that is written stays here, and is read back from here."""

    dry_run: bool = False
    has_written: bool = False
    """Whether anything on disk is another now."""

    _pretended: dict[Path, str | None] = field(default_factory=dict)

    def read(self, path: Path, *, max_bytes: int | None = MAX_BYTES) -> str | None:
        """Return the text of a file, with its line endings and its mark, or None if there is none.

        Raises:
            ConfigError: It cannot be read, is no text, or is too large; the message names it.
        """
        if path in self._pretended:
            return self._pretended[path]
        with naming(path):
            return _read(path, max_bytes=max_bytes)

    def pretended(self) -> Iterator[tuple[Path, str | None, str | None]]:
        """Yield what a dry run would have changed: each file with its text before and after."""
        for path, text in self._pretended.items():
            yield path, _read(path), text

    def write(self, path: Path, text: str | None, *, was: str | None, private: bool) -> None:
        """Replace a file whole, or remove it; links are followed and the mode stays.

        `was` is the text as it was read: whoever wrote since then must not lose that. A new file is
        open to its owner alone, and with `private` an old one is from now on.

        Raises:
            ConfigError: It cannot be written, or has changed; the message names it.
        """
        if self.dry_run:
            self._pretended[path] = text
            return
        with naming(path):
            if _read(path) != was:
                raise ConfigError("was changed by another program just now: run the command again")
            try:
                self.has_written = True
                _write(path, text, private=private)
            except OSError as error:
                raise ConfigError(f"cannot be written: {error.strerror}") from error

    def remove_directory(self, path: Path) -> None:
        """Remove a directory if nothing is in it."""
        if not self.dry_run:
            with suppress(OSError):
                path.rmdir()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file before what is found wrong with it."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path} {error}. It was left untouched.") from error


def require_writable(path: Path) -> None:
    """Find out before anything is changed whether a file could be replaced.

    Raises:
        ConfigError: It could not; the message names it.
    """
    real = path.resolve()
    # Whoever may write everywhere still takes a file that is marked so for read-only.
    if real.exists() and not _is_writable(real):
        raise ConfigError(f"{path} is read-only. It was left untouched.")
    directory = next(each for each in real.parents if each.exists())
    if not directory.is_dir():
        raise ConfigError(f"{path} cannot be made: {directory} is not a directory.")
    if not _is_writable(directory):
        raise ConfigError(f"{path} cannot be written: the directory {directory} is read-only.")


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)


def _read(path: Path, *, max_bytes: int | None = None) -> str | None:
    if path.is_symlink() and not path.exists():
        raise ConfigError(f"is a link to {path.readlink()}, which is not there")
    content = read_file(path, max_bytes=max_bytes)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not text in UTF-8: byte {error.start}") from error


def _write(path: Path, text: str | None, *, private: bool) -> None:
    if text is None:
        path.resolve().unlink(missing_ok=True)
    else:
        _replace(path.resolve(), text.encode(), private=private)


def _replace(real: Path, content: bytes, *, private: bool) -> None:
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o600
    descriptor, name = tempfile.mkstemp(prefix=f".{real.name}.", suffix=".tmp", dir=real.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode & 0o600 if private else mode)
        _keep_owner(real, temporary)
        temporary.replace(real)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _keep_owner(real: Path, temporary: Path) -> None:
    """Leave a file to whom it belongs, where somebody else with the power to do so edits it."""
    if real.exists() and hasattr(os, "chown"):
        owner, own = real.stat(), temporary.stat()
        if (owner.st_uid, owner.st_gid) != (own.st_uid, own.st_gid):
            os.chown(temporary, owner.st_uid, owner.st_gid)
