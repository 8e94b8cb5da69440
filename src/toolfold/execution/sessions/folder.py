"""The folder of a namespace's sessions: a file and a lock for each, and what runs began with."""

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from math import inf
from pathlib import Path
from typing import IO, Final

import anyio

from toolfold.errors import StoreError
from toolfold.storage.locks import try_lock

_SUFFIX: Final = ".session"
_COPY: Final = re.compile(r".*\.\d+\.session")
_POLL_S: Final = 0.02


class SessionFolder:
    """Where sessions are, and who has one to himself. Several processes may use it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __iter__(self) -> Iterator[Path]:
        return self._directory.glob(f"*{_SUFFIX}")

    def path(self, name: str) -> Path:
        """Return the file of a session, whether it is there or not."""
        return self._directory / f"{name}{_SUFFIX}"

    def start(self, run_id: str) -> Path:
        """Return the file of what a session was when a run began."""
        return self._directory / "starts" / run_id

    def keep_start(self, name: str, run_id: str) -> None:
        """Keep what a session is now."""
        with suppress(OSError):
            start = self.start(run_id)
            start.parent.mkdir(mode=0o700, exist_ok=True)
            os.link(self.path(name), start)

    def drop_start(self, run_id: str) -> None:
        """Keep it no longer."""
        with suppress(OSError):
            self.start(run_id).unlink()

    @asynccontextmanager
    async def having(self, name: str, *, within_s: float | None) -> AsyncIterator[bool]:
        """Try to have a session to oneself, for so long; None to wait until that is so."""
        end = inf if within_s is None else anyio.current_time() + within_s
        while (lock := self._try_lock(name)) is None and anyio.current_time() < end:  # noqa: ASYNC110
            await anyio.sleep(_POLL_S)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.close()

    def locked(self, name: str) -> IO[str]:
        """Have a session to oneself until what is returned is closed.

        Raises:
            StoreError: A run has it, or the directory cannot be used.
        """
        lock = self._try_lock(name)
        if lock is None:
            raise StoreError(f"A run is under way in session {name!r}; try again when it is over.")
        return lock

    def _try_lock(self, name: str) -> IO[str] | None:
        lock = self._open_lock(name)
        if try_lock(lock.fileno()) and os.fstat(lock.fileno()).st_nlink:
            return lock
        lock.close()  # somebody has it, or removed it with its session
        return None

    def _open_lock(self, name: str) -> IO[str]:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return (self._directory / f"{name}.lock").open("a")
        except OSError as error:
            raise StoreError(f"Sessions cannot be kept in {self._directory}: {error}") from error

    def prune(self, remove: Callable[[Path], None], *, most: int, oldest: float) -> None:
        """Remove what was not used since `oldest`, and the eldest while there are too many."""
        for number, path in enumerate(self._by_worth()):
            if number < most and path.stat().st_mtime >= oldest:
                continue
            name = path.name.removesuffix(_SUFFIX)
            with suppress(StoreError, OSError), self.locked(name):
                remove(path)
                path.with_name(f"{name}.lock").unlink(missing_ok=True)
        for start in (self._directory / "starts").glob("*"):
            with suppress(OSError):
                if start.stat().st_ctime < oldest:
                    start.unlink()

    def _by_worth(self) -> Iterator[Path]:
        """Yield all files: copies that were made of busy sessions last, then by their last use."""
        found = []
        for path in self:
            with suppress(OSError):
                is_copy = _COPY.fullmatch(path.name) is not None
                found.append((is_copy, -path.stat().st_mtime, path))
        yield from (path for *_, path in sorted(found))
