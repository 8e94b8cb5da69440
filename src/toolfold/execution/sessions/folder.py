"""The folder of a namespace's sessions: files, locks, and guests that are parked."""

import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import anyio

from toolfold.errors import StateLost, StoreError
from toolfold.sandbox.sandbox import Parked
from toolfold.storage.files import replace_file, try_lock
from toolfold.storage.secrets import read_key

_SUFFIX: Final = ".session"
_COPY: Final = re.compile(r".*\.\d+\.session")
_POLL_S: Final = 0.02
_MAX_PATHS: Final = 128

FileStamp = tuple[int, int, int]


@lru_cache(_MAX_PATHS)
def _inside(directory: Path, name: str) -> Path:
    """Return a path: to put one together takes longer than to use it."""
    return directory / name


class SessionFolder:
    """Where sessions are, and who has one to himself. Several processes may use it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __iter__(self) -> Iterator[Path]:
        return self._directory.glob(f"*{_SUFFIX}")

    def path(self, name: str) -> Path:
        """Return the file of a session, whether it is there or not."""
        return _inside(self._directory, f"{name}{_SUFFIX}")

    def stamp(self, name: str) -> FileStamp | None:
        """Return what the file of a session has as long as nobody replaces it; None without one."""
        try:
            status = self.path(name).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def start(self, run_id: str) -> Path:
        """Return the file of what a session was when a run began."""
        return self._directory / "starts" / run_id

    def keep_start(self, name: str, run_id: str) -> None:
        """Keep what a session is now."""
        start = self.start(run_id)
        with suppress(OSError):
            try:
                os.link(self.path(name), start)
            except FileNotFoundError:
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
            raise StoreError(
                f"A run is in progress in session {name!r}; try again when it has ended."
            )
        return lock

    def _try_lock(self, name: str) -> IO[str] | None:
        lock = self._open_lock(name)
        if try_lock(lock.fileno()) and os.fstat(lock.fileno()).st_nlink:
            return lock
        lock.close()  # somebody has it, or removed it with its session
        return None

    def _open_lock(self, name: str) -> IO[str]:
        path = _inside(self._directory, f"{name}.lock")
        try:
            try:
                return path.open("a")
            except FileNotFoundError:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                return path.open("a")
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
        self._drop_locks(oldest)

    def _drop_locks(self, oldest: float) -> None:
        """Remove locks that nobody has had since, and that no session is left for."""
        for path in self._directory.glob("*.lock"):
            name = path.name.removesuffix(".lock")
            with suppress(StoreError, OSError):
                is_used = self.path(name.partition("~")[0]).exists()
                if not is_used and path.stat().st_mtime < oldest:
                    with self.locked(name):
                        path.unlink(missing_ok=True)

    def _by_worth(self) -> Iterator[Path]:
        """Yield all files: copies that were made of busy sessions last, then by their last use."""
        found = []
        for path in self:
            with suppress(OSError):
                is_copy = _COPY.fullmatch(path.name) is not None
                found.append((is_copy, -path.stat().st_mtime, path))
        yield from (path for *_, path in sorted(found))


_LOOK_S: Final = 30.0


class _Waiting(NamedTuple):
    since: float
    generation: str
    parked: Parked


class ParkedProcesses:
    """Keeps a few of them, the last used; those that wait for long are ended.

    Another process may have resumed a session meanwhile: what waits is good for one generation
    of its variables only.
    """

    def __init__(
        self, most: int, *, idle_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._idle_s = idle_s
        self._clock = clock
        self._waiting: dict[Path, _Waiting] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have room for the length of this context; what waits at its end is ended with it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_tidy)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                self._let_go(len(self._waiting))

    def park(self, key: Path, generation: str, parked: Parked) -> None:
        """Let a process wait under a key; the one that waited longest may have to go."""
        before = self._waiting.pop(key, None)
        if before is not None and before.parked is not parked:
            before.parked.close()
        self._waiting[key] = _Waiting(self._clock(), generation, parked)
        self._let_go(len(self._waiting) - self._most)

    def put_back(self, key: Path, generation: str, parked: Parked) -> None:
        """Let one wait again that was taken and not used, unless it has ended."""
        if key not in self._waiting and parked.is_alive:
            self.park(key, generation, parked)

    def take(self, key: Path, generation: str) -> Parked | None:
        """Return what waits under a key, which then does not any more; None if nothing does."""
        found = self._waiting.pop(key, None)
        if found is None:
            return None
        if found.generation != generation or not found.parked.is_alive:
            found.parked.close()
            return None
        return found.parked

    def forget(self, key: Path) -> None:
        """End what waits under a key."""
        found = self._waiting.pop(key, None)
        if found is not None:
            found.parked.close()

    def _let_go(self, number: int) -> None:
        for key in list(self._waiting)[: max(0, number)]:
            self.forget(key)

    async def _keep_tidy(self) -> None:
        while True:
            await anyio.sleep(_LOOK_S)
            longest = self._clock() - self._idle_s
            self._let_go(sum(each.since < longest for each in self._waiting.values()))


_FORMAT: Final = b"toolfold session 1\n"
_MAX_HEADER_BYTES: Final = 4 * 1024 * 1024


class StateFiles:
    """Writes and reads such files. Whoever cannot read the key cannot make one."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def write(self, path: Path, header: dict[str, Any], state: bytes) -> None:
        """Replace the file at once; it survives the death of this process.

        Raises:
            OSError: It cannot be written; what was there is there still.
        """
        head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        content = b"".join((_FORMAT, self._sign(path, head, state), b"\n", head, state))
        try:
            replace_file(path, content, is_durable=False)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, content, is_durable=False)

    def read(self, path: Path, *, signed_as: Path | None = None) -> tuple[dict[str, Any], bytes]:
        """Return the header and the state; `signed_as` says under which path it was written.

        Raises:
            FileNotFoundError: There is none.
            StateLost: It cannot be read, or somebody else wrote it.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StateLost(f"The file {path.name} cannot be read: {error.strerror}.") from error
        form, signature, head, state = _parts(content)
        if form != _FORMAT or not hmac.compare_digest(
            signature, self._sign(signed_as or path, head, state)
        ):
            raise StateLost(f"The file {path.name} was changed by another process.")
        header: dict[str, Any] = json.loads(head)
        return header, state

    def header(self, path: Path) -> dict[str, Any] | None:
        """Return the header alone, not verified: to show, never to go by."""
        try:
            with path.open("rb") as file:
                file.readline(100)
                file.readline(100)
                header: dict[str, Any] = json.loads(file.readline(_MAX_HEADER_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
        return header if isinstance(header, dict) else None

    def _sign(self, path: Path, head: bytes, state: bytes) -> bytes:
        """Bind what is kept to its place: a file is good for one session only."""
        place = f"{path.parent.name}/{path.name}\n".encode()
        digest = hmac.new(read_key(self._key_file), place + head, hashlib.sha256)
        digest.update(hashlib.sha256(state).digest())
        return digest.hexdigest().encode()


def _parts(content: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    ends = [0]
    for _ in range(3):
        ends.append(content.find(b"\n", ends[-1]) + 1)
        if not ends[-1]:
            return b"", b"", b"", b""
    form, signature, head = (content[a:b] for a, b in pairwise(ends))
    return form, signature.rstrip(b"\n"), head, content[ends[-1] :]
