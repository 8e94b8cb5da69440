"""Which files are meant, and how they are opened: nobody can put another in their place."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from toolfold.errors import BadInput, NotFound
from toolfold.memory.documents.kinds import Unreadable, is_document
from toolfold.memory.inputs import MAX_NAME_CHARS

MAX_FILE_BYTES: Final = 100 * 1024 * 1024
MAX_FILES: Final = 10_000
MAX_PATH_CHARS: Final = MAX_NAME_CHARS - 20
"""The path is the source of a note, and a part of the name of its thread."""

# What programs make and nobody reads, as most .gitignore files have it.
_PASSED_OVER: Final = frozenset(
    {
        *("node_modules", "bower_components", "__pycache__", "site-packages", "venv"),
        *("build", "dist", "target", "htmlcov"),
    }
)
_MAX_VISITED: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file as the directory has it."""

    path: Path
    """With no symbolic link in it."""

    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which files of a folder are read."""

    pattern: str | None = None
    is_recursive: bool = True

    def has(self, name: str, below: str) -> bool:
        """Whether a file is meant, by its name and its path below the folder."""
        if self.pattern is None:
            return is_document(name)
        if "/" not in self.pattern:
            return fnmatchcase(name, self.pattern)
        return fnmatchcase(below, self.pattern.replace("**/", "*"))


def locate(path: str, roots: Sequence[Path] | None) -> Path:
    """Return where a path really leads, if it may be read: to a file or a folder.

    Raises:
        BadInput: It is no path, it is relative to nothing, or it is not within the roots.
        NotFound: Nothing is there.
    """
    _check_path(path)
    if roots is not None and not roots:
        raise BadInput(_nothing_allowed(path))
    given = Path(path).expanduser()
    if not given.is_absolute():
        if not roots:
            raise BadInput(f"{path!r} is a relative path. Give the whole path.")
        given = Path(roots[0]) / given
    try:
        found = given.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        _check_within(Path(os.path.normpath(given)), roots, path)
        raise NotFound(f"There is no file or folder {path!r}.") from error
    _check_within(found, roots, path)
    return found


def expected(path: str, roots: Sequence[Path] | None) -> Path:
    """Return where a path led when something was there.

    Raises:
        BadInput: It is no path, or it is relative to nothing.
    """
    _check_path(path)
    with suppress(NotFound):
        return locate(path, None if roots is None or Path(path).is_absolute() else roots)
    given = Path(path).expanduser()
    return Path(os.path.normpath(given if given.is_absolute() else Path((roots or ())[0]) / given))


def find_files(place: Path, selection: Selection) -> Iterator[Candidate]:
    """Give the files that are meant, by name; of a single file, itself.

    Hidden ones, symbolic links, and folders that programs fill are passed over.

    Raises:
        Unreadable: The folder cannot be listed, or holds more than can be gone through.
    """
    if not place.is_dir():
        yield _candidate(place)
        return
    folders = [place]
    visited = 0
    while folders:
        folder = folders.pop()
        inner = []
        for entry in _entries(folder):
            visited += 1
            if visited > _MAX_VISITED:
                raise Unreadable(f"More than {_MAX_VISITED:,} files are in it. Name a part of it.")
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                if selection.is_recursive and not _is_passed_over(path):
                    inner.append(path)
            elif selection.has(entry.name, path.relative_to(place).as_posix()):
                with suppress(OSError):  # gone since
                    yield _candidate(path)
        folders.extend(reversed(inner))


def read_file(path: Path) -> tuple[bytes, os.stat_result]:
    """Return what is in a file, and what it was then.

    Every part of the path is opened by itself and must be no symbolic link, so a file that was
    found within a root is read there or not at all.

    Raises:
        Unreadable: It cannot be opened, is no file, or is too large.
    """
    try:
        with _opened(path) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Unreadable("It is not a regular file.")
            if found.st_size > MAX_FILE_BYTES:
                raise Unreadable(_too_large(found.st_size))
            content = _read_bounded(descriptor)
            return content, found
    except OSError as error:
        raise Unreadable(f"It cannot be opened: {error.strerror or error}.") from error


def shown_path(path: Path) -> str:
    """Return a path as text that can be printed and kept, whatever bytes its name has."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def check_name(path: Path) -> str:
    """Return the path as it is kept.

    Raises:
        Unreadable: It is too long, or is not text.
    """
    name = shown_path(path)
    if name != str(path):
        raise Unreadable("Its name is not text (UTF-8). Rename it.")
    if len(name) > MAX_PATH_CHARS:
        raise Unreadable(f"Its path is longer than {MAX_PATH_CHARS} characters. Move it.")
    return name


def _check_path(path: object) -> None:
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise BadInput("`path` is the path of a file or a folder, as text.")


def _check_within(place: Path, roots: Sequence[Path] | None, path: str) -> None:
    if roots is None:
        return
    if not any(place.is_relative_to(Path(root).resolve()) for root in roots):
        allowed = ", ".join(map(str, roots))
        raise BadInput(
            f"{path!r} is not in a folder that may be read from here. Those are: {allowed}. "
            "The user can ingest anything with `toolfold memory ingest PATH`."
        )


def _nothing_allowed(path: str) -> str:
    return (
        f"{path!r} cannot be read: no folder may be ingested from here. The user can name "
        "some in the setting `memory.ingest_roots`, or run `toolfold memory ingest PATH`."
    )


def _candidate(path: Path) -> Candidate:
    found = path.lstat()
    return Candidate(path, found.st_size, found.st_mtime_ns)


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            wanted = [
                entry
                for entry in entries
                if not entry.name.startswith(".") and not entry.is_symlink()
            ]
    except OSError as error:
        raise Unreadable(f"{folder} cannot be listed: {error.strerror or error}.") from error
    return sorted(wanted, key=lambda entry: entry.name)


def _is_passed_over(folder: Path) -> bool:
    return folder.name in _PASSED_OVER or (folder / "pyvenv.cfg").exists()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = _open_step_by_step(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_step_by_step(path: Path) -> int:
    # Nobody waits for the other end of a pipe that was put where a file was.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if os.open not in os.supports_dir_fd:  # Windows, where links need rights of their own
        return os.open(path, flags)
    anchor, *names = path.parts
    descriptor = os.open(anchor, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, name in enumerate(names, start=1):
        more = os.O_DIRECTORY if number < len(names) else flags
        try:
            inner = os.open(name, more | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _read_bounded(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:  # it grows
        raise Unreadable(_too_large(len(content)))
    return content


def _too_large(size: int) -> str:
    return f"It has {size:,} bytes, and {MAX_FILE_BYTES:,} is the limit. Split it."
