"""Trees of files put together: a root directory, and below it what each tree has."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, NoReturn, Protocol

from toolfold.sandbox.sandbox import FileDraft, FileStatus, GuestFiles

WORKSPACE: Final = "/workspace"
"""Where guest code starts, and what relative paths are relative to."""

_SHOWN_CHARS: Final = 200


class _Known(NamedTuple):
    is_dir: bool
    size: int = 0
    changed_at: float = 0.0


class TextTree(Protocol):
    """Texts that the host makes up, as a tree."""

    def entries(self, path: str) -> Sequence[str] | None:
        """Return the names in a directory; None if there is no such directory."""
        ...

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        ...


class _Closed:
    """A tree in which nothing can be changed."""

    _why: str = f"There are only files to read here; write to {WORKSPACE}"

    def create(self, path: str) -> FileDraft:  # noqa: ARG002
        self._refuse()

    def make(self, path: str) -> None:  # noqa: ARG002
        self._refuse()

    def write(self, path: str, content: bytes, offset: int | None = None) -> None:  # noqa: ARG002
        self._refuse()

    def truncate(self, path: str, size: int) -> None:  # noqa: ARG002
        self._refuse()

    def mkdir(self, path: str) -> None:  # noqa: ARG002
        self._refuse()

    def unlink(self, path: str) -> None:  # noqa: ARG002
        self._refuse()

    def rmdir(self, path: str) -> None:  # noqa: ARG002
        self._refuse()

    def rename(self, path: str, target: str) -> None:  # noqa: ARG002
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(errno.EACCES, self._why)


class Unchanged(_Closed):
    """A tree that can be read, and not be changed now."""

    def __init__(self, tree: GuestFiles, why: str) -> None:
        self._tree = tree
        self._why = f"Nothing can be changed: {why}"

    def stat(self, path: str) -> FileStatus:
        """See `GuestFiles`, as for all below."""
        return self._tree.stat(path)

    def entries(self, path: str) -> Sequence[tuple[str, FileStatus]]:
        return self._tree.entries(path)

    def read(self, path: str, offset: int, size: int) -> bytes:
        return self._tree.read(path, offset, size)


class ReadOnlyTree(_Closed):
    """Such texts as files that can be read, and not be changed."""

    def __init__(self, texts: TextTree, name: str) -> None:
        self._texts = texts
        self._name = name

    def stat(self, path: str) -> FileStatus:
        """See `GuestFiles`, as for all below."""
        whole = self._whole(path)
        if self._texts.entries(whole) is not None:
            return _Known(is_dir=True)
        return _Known(is_dir=False, size=len(self._content(path)))

    def entries(self, path: str) -> list[tuple[str, FileStatus]]:
        names = self._texts.entries(self._whole(path))
        if names is None:
            self._content(path)
            raise _error(errno.ENOTDIR)
        return [(name, self.stat(f"{path}/{name}" if path else name)) for name in names]

    def read(self, path: str, offset: int, size: int) -> bytes:
        if self._texts.entries(self._whole(path)) is not None:
            raise _error(errno.EISDIR)
        return self._content(path)[offset : offset + size]

    def _whole(self, path: str) -> str:
        return f"/{self._name}/{path}" if path else f"/{self._name}"

    def _content(self, path: str) -> bytes:
        text = self._texts.read(self._whole(path))
        if text is None:
            raise _error(errno.ENOENT)
        return text.encode()


class Roots:
    """Trees by the names that they have in the root. Paths are absolute, and may be hostile."""

    def __init__(self, trees: Mapping[str, GuestFiles]) -> None:
        self.has_changed = False
        """Whether anything was changed through this."""
        self._trees = trees

    def stat(self, path: str) -> FileStatus:
        """See `GuestFiles`, as for all below."""
        if _is_root(path):
            return _Known(is_dir=True)
        with self._at(path) as (tree, inner):
            return tree.stat(inner)

    def entries(self, path: str) -> Sequence[tuple[str, FileStatus]]:
        if _is_root(path):
            return [(name, _Known(is_dir=True)) for name in sorted(self._trees)]
        with self._at(path) as (tree, inner):
            return tree.entries(inner)

    def read(self, path: str, offset: int, size: int) -> bytes:
        with self._at(path) as (tree, inner):
            return tree.read(inner, offset, size)

    def create(self, path: str) -> FileDraft:
        with self._changing(path) as (tree, inner):
            return tree.create(inner)

    def make(self, path: str) -> None:
        with self._changing(path) as (tree, inner):
            tree.make(inner)

    def write(self, path: str, content: bytes, offset: int | None = None) -> None:
        with self._changing(path) as (tree, inner):
            tree.write(inner, content, offset)

    def truncate(self, path: str, size: int) -> None:
        with self._changing(path) as (tree, inner):
            tree.truncate(inner, size)

    def mkdir(self, path: str) -> None:
        with self._changing(path) as (tree, inner):
            tree.mkdir(inner)

    def unlink(self, path: str) -> None:
        with self._changing(path) as (tree, inner):
            tree.unlink(inner)

    def rmdir(self, path: str) -> None:
        with self._changing(path) as (tree, inner):
            tree.rmdir(inner)

    def rename(self, path: str, target: str) -> None:
        with self._changing(path) as (tree, inner), self._at(target) as (other, outer):
            if other is not tree:
                raise OSError(errno.EXDEV, f"It cannot be moved to {target!r:.200}: copy it")
            tree.rename(inner, outer)

    @contextmanager
    def _changing(self, path: str) -> Iterator[tuple[GuestFiles, str]]:
        with self._at(path) as found:
            yield found
            self.has_changed = True

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[GuestFiles, str]]:
        """Yield the tree that a path leads into, and the path from there on."""
        with named(path):
            parts = [part for part in path.split("/") if part]
            tree = self._trees.get(parts[0]) if parts and path.startswith("/") else None
            if tree is None:
                places = " and ".join(f"/{name}" for name in sorted(self._trees, reverse=True))
                raise OSError(errno.ENOENT, f"No such file: there is only {places}")
            yield tree, "/".join(parts[1:])


@contextmanager
def named(path: str) -> Iterator[None]:
    """Have errors name the path as guest code knows it."""
    try:
        yield
    except OSError as error:
        shown = path[:_SHOWN_CHARS].encode("utf-8", "replace").decode()
        raise OSError(error.errno, error.strerror, shown) from error


def _is_root(path: str) -> bool:
    return path.startswith("/") and not path.strip("/")


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
