"""Sessions: the variables that runs share, kept on disk between them.

A session holds a worker only while one of its runs goes on. What Monty has of it is a file, signed,
and written before the run is answered. CPython's variables are a process that stands still, and
beside it a file with what guests could pickle of them, for when the process is gone or busy.
"""

import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from toolfold.config.config import Config
from toolfold.errors import BadInput, NotFound, StateLost
from toolfold.execution.sessions.bindings import (
    Bindings,
    SessionInfo,
    frozen_in,
    header_of,
    info_in,
)
from toolfold.execution.sessions.folder import FileStamp, ParkedProcesses, SessionFolder, StateFiles
from toolfold.execution.sessions.handover import not_carried
from toolfold.execution.sessions.pickled import (
    Pickled,
    Texts,
    decoded,
    encoded,
    listed,
    lost_names,
    lost_with_process,
    only,
)
from toolfold.execution.tiers import Tier
from toolfold.sandbox.sandbox import Frozen, SessionState

SESSION_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""What a session may be called, as a pattern of JSON Schema."""

_NAME: Final = re.compile(SESSION_NAME.strip("^$"))
_LARGE_BYTES: Final = 1 << 20  # what takes longer to read than a thread to begin
_SMALL_BYTES: Final = 64 << 10  # the same, of what is written
_MAX_REMEMBERED: Final = 16
_DAY_S: Final = 24 * 3600.0
_QUEUE_S: Final = 1.0


@dataclass(slots=True, kw_only=True)
class SessionLease:
    """A session while a run has it to itself."""

    info: SessionInfo
    state: SessionState | None = None
    notes: list[str] = field(default_factory=list)
    """What the model must know of it."""
    is_kept: bool = True
    """Whether its state outlives the run."""
    is_apart: bool = False
    """Whether another run has the session, so that what this one changes is carried into it."""
    base: str = ""
    """Which variables were kept when it began."""
    texts: Texts = field(default_factory=dict)
    """In CPython, its variables as they were last written down."""
    before: Texts = field(default_factory=dict)
    """The same, as its run began."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What a move to CPython left behind, by name, and why."""

    def leave_behind(self) -> None:
        """Forget what a move left behind, and say so."""
        if self.missing:
            kept = [name for name in self.info.bindings.names if name not in self.missing]
            self.info = replace(self.info, bindings=only(self.info.bindings, kept))
            self.notes.append(not_carried(self.missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How many sessions there may be, how large, and for how long."""

    most: int
    days: int
    state_bytes: int
    queue_s: float = _QUEUE_S
    """For how long those queue who need not have one to themselves."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What the file of a session holds, as long as nobody replaces it."""

    stamp: FileStamp
    info: SessionInfo
    state: Frozen


class Sessions:
    """The sessions of one namespace. Several processes may use them."""

    def __init__(
        self,
        directory: Path,
        *,
        scope: str,
        interpreter: str,
        limits: SessionLimits,
        parked_processes: ParkedProcesses,
        clock: Callable[[], float] = time.time,
    ) -> None:
        digest = hashlib.sha256(scope.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._folder = SessionFolder(directory / digest)
        self._files = StateFiles(directory / "key")
        self._interpreter = interpreter
        self._limits = limits
        self._parked_processes = parked_processes
        self._clock = clock
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()

    @asynccontextmanager
    async def hold(
        self, name: str | None, *, may_go_beside: bool = False
    ) -> AsyncIterator[SessionLease]:
        """Have a session to oneself, made if it is not there; None for one that nobody keeps.

        Others queue for it. Who `may_go_beside` does so for a moment, and then begins with its last
        kept variables, whoever has it: what it changes is carried into the session at its end.

        Raises:
            BadInput: No session can have that name.
            StoreError: The directory cannot be used.
        """
        if name is None:
            yield SessionLease(info=SessionInfo(name=""), is_kept=False)
            return
        _check(name)
        within_s = self._limits.queue_s if may_go_beside else None
        async with self._folder.having(name, within_s=within_s) as is_ours:
            if is_ours:
                async with self._loaded(name) as lease:
                    yield lease
                return
        yield self.latest(name)

    @asynccontextmanager
    async def hold_again(
        self, name: str, generation: str, first: str
    ) -> AsyncIterator[SessionLease]:
        """Have a session as it was when the run `first` began in it.

        If it has gone on since, what the run changes is carried into it.

        Raises:
            StateLost: What it was then is not kept.
            StoreError: The directory cannot be used.
        """
        async with self._folder.having(name, within_s=0) as is_ours:
            if is_ours and self._generation(name) == generation:
                async with self._loaded(name) as lease:
                    yield lease
                return
        header, content = self._read_start(name, generation, first)
        lease = SessionLease(info=SessionInfo(name=name), is_apart=True, base=generation)
        if generation:
            self._fill(lease, header, content)
        yield lease

    @asynccontextmanager
    async def updating(self, name: str) -> AsyncIterator[None]:
        """Be the only one who changes the kept variables of a session, whoever has it."""
        async with self._folder.having(f"{name}~update", within_s=None):
            yield

    def has_gone_on(self, lease: SessionLease) -> bool:
        """Whether others have changed a session since a lease of it began."""
        known = self._recalled(lease.info.name)
        info = known.info if known else self._shown(self._folder.path(lease.info.name))
        return (info.generation if info else "") != lease.base

    def latest(self, name: str) -> SessionLease:
        """Return what was last kept of a session, whoever has it."""
        lease = SessionLease(info=SessionInfo(name=name), is_apart=True)
        try:
            header, content = self._files.read(self._folder.path(name))
            lease.base = header["generation"]
            if header["interpreter"] in {self._interpreter, "cpython"}:
                self._fill(lease, header, content)
        except (FileNotFoundError, StateLost):
            pass
        return lease

    @staticmethod
    def _fill(lease: SessionLease, header: dict[str, Any], content: bytes) -> None:
        """Give a lease the variables that were written with a header."""
        lease.info = info_in(header)
        if lease.info.tier == "cpython":
            lease.texts = decoded(content)
            lease.state = Pickled(lease.texts) if lease.texts else None
        else:
            lease.state = frozen_in(header, content)

    def take_parked(self, lease: SessionLease) -> SessionState | None:
        """Return the process that holds a session's latest variables; None where none waits."""
        path = self._folder.path(lease.info.name)
        return self._parked_processes.take(path, lease.info.generation)

    @asynccontextmanager
    async def _loaded(self, name: str) -> AsyncIterator[SessionLease]:
        """Load a session that one has to oneself; a process that is not used waits again."""
        path, stamp = self._folder.path(name), self._folder.stamp(name)
        if known := self._recalled(name):
            lease = SessionLease(base=known.info.generation, info=known.info, state=known.state)
        else:
            is_large = stamp is not None and stamp[-1] > _LARGE_BYTES
            read = partial(self._read, name)
            lease = self._load(name, await anyio.to_thread.run_sync(read) if is_large else read())
            self._remember(stamp, lease)
        try:
            yield lease
        finally:
            if lease.state is not None and not isinstance(lease.state, Frozen):
                self._parked_processes.put_back(path, lease.info.generation, lease.state)

    def _recalled(self, name: str) -> _Remembered | None:
        """Return what this process wrote or read of a session last, if that is what there is."""
        known = self._remembered.get(name)
        return known if known is not None and known.stamp == self._folder.stamp(name) else None

    def _remember(self, stamp: FileStamp | None, lease: SessionLease) -> None:
        """Spare the next run to read and verify what is known."""
        self._remembered.pop(lease.info.name, None)
        if stamp is not None and stamp[-1] <= _LARGE_BYTES and isinstance(lease.state, Frozen):
            self._remembered[lease.info.name] = _Remembered(stamp, lease.info, lease.state)
            if len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)

    def _generation(self, name: str) -> str:
        """Return which variables a session has now."""
        try:
            return info_in(self._files.read(self._folder.path(name))[0]).generation
        except (FileNotFoundError, StateLost):
            return ""

    def _read_start(self, name: str, generation: str, first: str) -> tuple[dict[str, Any], bytes]:
        if not generation:
            return {}, b""
        try:
            header, content = self._files.read(
                self._folder.start(first), signed_as=self._folder.path(name)
            )
        except FileNotFoundError:
            raise StateLost(
                f"The variables that session {name!r} had when the run began are not kept."
            ) from None
        is_known = header["interpreter"] in {self._interpreter, "cpython"}
        if header["generation"] != generation or not is_known:
            raise StateLost(f"The variables of session {name!r} are not those it began with.")
        return header, content

    def remember_start(self, lease: SessionLease, run_id: str) -> None:
        """Keep what a session is now until the run that begins has come to its own end."""
        if lease.is_kept and lease.state is not None:
            self._folder.keep_start(lease.info.name, run_id)

    def forget_start(self, run_id: str) -> None:
        """Keep it no longer."""
        self._folder.drop_start(run_id)

    async def keep(
        self, lease: SessionLease, state: SessionState | None, tier: Tier, bound: Bindings
    ) -> None:
        """Write down what a run has left, before it is answered."""
        if state is None or not lease.is_kept:
            if lease.is_kept and state is None and (lease.info.runs or lease.state):
                lease.notes.append("The session's variables are as they were before this run.")
            return
        now = self._clock()
        content = state.state if isinstance(state, Frozen) else encoded(lease.texts)
        if len(content) > self._limits.state_bytes:
            lease.notes.append(
                f"The session's variables take {len(content):,} bytes, and at most "
                f"{self._limits.state_bytes:,} can be kept: the session keeps its variables "
                "from before this run. Write large values to /workspace, and set their names to "
                "None."
            )
            return
        info = replace(
            lease.info,
            tier=tier,
            interpreter=self._interpreter if tier == "monty" else "cpython",
            created_at=lease.info.created_at or now,
            used_at=now,
            runs=lease.info.runs + 1,
            generation=secrets.token_hex(8),
            size_bytes=len(content),
            bindings=lease.info.bindings.after(bound),
        )
        header = header_of(info, state)
        path = self._folder.path(info.name)
        try:
            if len(content) > _SMALL_BYTES:
                await anyio.to_thread.run_sync(self._files.write, path, header, content)
            else:
                self._files.write(path, header, content)
        except OSError as error:
            lease.notes.append(f"The session's variables could not be kept: {error.strerror}.")
            return
        if not isinstance(state, Frozen | Pickled):
            self._parked_processes.park(path, info.generation, state)
        lease.info, lease.state, lease.base = info, state, info.generation
        self._remember(self._folder.stamp(info.name), lease)
        if info.runs == 1:
            oldest = now - self._limits.days * _DAY_S
            prune = partial(self._folder.prune, most=self._limits.most, oldest=oldest)
            await anyio.to_thread.run_sync(prune, self._remove)

    def list(self) -> list[SessionInfo]:
        """Return all, the last used first."""
        found = [self._shown(path) for path in self._folder]
        return sorted((info for info in found if info), key=lambda info: -info.used_at)

    def show(self, name: str) -> SessionInfo:
        """Return one.

        Raises:
            NotFound: There is none of that name.
        """
        info = self._shown(self._folder.path(_check(name)))
        if info is None:
            raise NotFound(f"There is no session {name!r}. `toolfold sessions` lists them.")
        return info

    def reset(self, name: str) -> None:
        """Forget the variables of a session.

        Raises:
            NotFound: There is none of that name.
            StoreError: A run has it, or it cannot be removed.
        """
        self.show(name)
        with self._folder.locked(name):
            self._remove(self._folder.path(name))

    def fork(self, name: str, copy: str) -> SessionInfo:
        """Make a copy of a session under another name.

        Raises:
            NotFound: There is none of that name.
            BadInput: The other name is taken, or its variables are CPython's.
            StoreError: A run has it, or it cannot be written.
            StateLost: Its state cannot be used.
        """
        self.show(name)
        if self._folder.path(_check(copy)).exists():
            raise BadInput(f"There is a session {copy!r} already.")
        with self._folder.locked(name), self._folder.locked(copy):
            header, state = self._files.read(self._folder.path(name))
            if header["tier"] != "monty":
                raise BadInput(f"The variables of {name!r} are CPython's: they cannot be copied.")
            header["name"] = copy
            self._files.write(self._folder.path(copy), header, state)
        return self.show(copy)

    def _read(self, name: str) -> tuple[dict[str, Any], bytes] | StateLost | None:
        try:
            return self._files.read(self._folder.path(name))
        except FileNotFoundError:
            return None
        except StateLost as error:
            return error

    def _load(
        self, name: str, read: tuple[dict[str, Any], bytes] | StateLost | None
    ) -> SessionLease:
        """Return a session as it was left; what is lost of it is said in a note.

        The file stays until something is kept in its place: every run until then says so.
        """
        if read is None:
            return SessionLease(info=SessionInfo(name=name))
        base = ""
        try:
            if isinstance(read, StateLost):
                raise read
            header, content = read
            info = info_in(header)
            base = info.generation
            lease = SessionLease(base=base, info=info)
            lease.texts = decoded(content) if info.tier == "cpython" else {}
            lease.state = self._state(self._folder.path(name), lease, header, content)
            return lease
        except StateLost as error:
            lost = f"The variables of session {name!r} are lost, and it starts empty: {error}"
            return SessionLease(base=base, info=SessionInfo(name=name), notes=[lost])

    def _state(
        self, path: Path, lease: SessionLease, header: dict[str, Any], content: bytes
    ) -> SessionState:
        info = lease.info
        if info.tier == "cpython":
            parked = self._parked_processes.take(path, info.generation)
            if parked is None and not lease.texts:
                raise StateLost(lost_with_process(info.bindings.names))
            if parked is None and (lost := lost_names(lease.texts, info.bindings)):
                lease.notes.append(lost_with_process(tuple(lost)))
            return parked or Pickled(lease.texts)
        if info.interpreter != self._interpreter:
            raise StateLost(
                f"{listed(info.bindings.names)} were written by {info.interpreter}, and this is "
                f"{self._interpreter}."
            )
        return frozen_in(header, content)

    def _shown(self, path: Path) -> SessionInfo | None:
        header = self._files.header(path)
        try:
            return None if header is None else info_in(header)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def _remove(self, path: Path) -> None:
        self._parked_processes.forget(path)
        path.unlink(missing_ok=True)


def sessions_of(
    config: Config, *, interpreter: str = "", parked_processes: ParkedProcesses | None = None
) -> Sessions:
    """Return the sessions of a configuration; without an `interpreter` none can be run in."""
    settings = config.settings
    return Sessions(
        config.directories.data / "sessions",
        scope=config.namespace,
        interpreter=interpreter,
        limits=SessionLimits(
            most=settings.sessions,
            days=settings.session_days,
            state_bytes=settings.limits.session_bytes,
            # Most of the time until its client is answered is for the run itself.
            queue_s=min(_QUEUE_S, settings.limits.answer_s / 4),
        ),
        parked_processes=parked_processes or ParkedProcesses(0, idle_s=0),
    )


def _check(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(
            "A session's name has 1 to 64 letters, digits, dots, underscores or hyphens; "
            f"{name[:80]!r} is none."
        )
    return name
