"""What a place for guest code looks like, whichever interpreter is behind it."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from toolfold.clocks import PausableClock
from toolfold.jsontypes import Json

FailureKind = Literal[
    "error",  # the code raised an exception
    "unsupported",  # the interpreter lacks something the code uses
    "timeout",  # a clock ran out
    "memory",
    "calls",  # more tool calls than allowed
    "value",  # a value over budget
    "crash",  # the worker died
    "approval",  # the user must be asked first
    "rejected",  # the user does not want it
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class GuestModule:
    """What `import <module>` gives guest code: functions the host answers, and their stub."""

    functions: tuple[str, ...]
    stub: str


Modules = Mapping[str, Callable[[], GuestModule]]
"""Modules by name, made when first imported: hundreds of tools cost nothing until used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Guest code, with what must be known of it beforehand."""

    source: str
    awaited: frozenset[int] = frozenset()
    """Byte offsets of the calls whose value the code awaits."""
    is_last: bool = False
    """Whether no other follows it in its session, which is left or closed next."""


@dataclass(frozen=True, slots=True)
class GuestCall:
    """One call from guest code to a function of the host. Its values are plain JSON."""

    function: str
    args: tuple[Json, ...]
    kwargs: dict[str, Json]


AHEAD: Final = "_toolfold_ahead"
"""The function by which a program, rewritten so, says which calls will come. It is no call itself,
so it does not count as one."""

MAX_AHEAD: Final = 1_000
"""How often it may say so before it counts."""

OnCall = Callable[[GuestCall], Awaitable[Json]]
"""Answers a call. What it raises becomes the guest's exception; a `RunError` ends the run."""


OnPrint = Callable[[str], None]
"""Hears a piece of what guest code prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestFailure:
    """Why guest code did not reach its end."""

    kind: FailureKind
    message: str
    """`KeyError: 'name'`, or our own sentence about a limit."""
    traceback: str = ""
    line: int | None = None
    """The last line of this program on the way to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestOutcome:
    """What came of one piece of guest code. Failures of the guest are values, not exceptions."""

    output: str = ""
    output_dropped: int = 0
    """Characters printed beyond the limit, which were not kept."""
    value: Json = None
    failure: GuestFailure | None = None
    guest_s: float = 0.0
    waiting_s: float = 0.0
    program: str = ""
    """What tracebacks call the file of this program."""


class FileStatus(Protocol):
    """What is known of a file or a directory without reading it."""

    @property
    def is_dir(self) -> bool: ...

    @property
    def size(self) -> int: ...

    @property
    def changed_at(self) -> float: ...


class FileDraft(Protocol):
    """A file that is being written, and that nobody sees until it is finished."""

    def write(self, content: bytes, offset: int | None = None) -> None:
        """Write at `offset`, by default at the end."""
        ...

    def truncate(self, size: int) -> None:
        """Give it another length."""
        ...

    def finish(self) -> None:
        """Put it in its place. If that fails, it is gone."""
        ...

    def discard(self) -> None:
        """Remove it."""
        ...


class GuestFiles(Protocol):
    """A tree of files for guest code. What cannot be done raises an `OSError` with our words."""

    def stat(self, path: str) -> FileStatus:
        """Return the status of a file or directory."""
        ...

    def entries(self, path: str) -> Sequence[tuple[str, FileStatus]]:
        """Return what is in a directory."""
        ...

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return at most `size` bytes of a file from `offset` on."""
        ...

    def create(self, path: str) -> FileDraft:
        """Begin a file that replaces any at `path` once it is finished."""
        ...

    def make(self, path: str) -> None:
        """Make an empty file where there is none."""
        ...

    def write(self, path: str, content: bytes, offset: int | None = None) -> None:
        """Write into a file that is there, at `offset` or else at its end."""
        ...

    def truncate(self, path: str, size: int) -> None:
        """Give a file another length."""
        ...

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def rename(self, path: str, target: str) -> None:
        """Give a file or directory another name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The state of a session as bytes, with which a later one goes on, in any process.

    Only bytes that are surely ours may be used: the interpreter believes them.
    """

    state: bytes
    programs: int
    """How many have run in it."""
    awaited: Mapping[int, frozenset[int]]
    """By the number of a program, the calls that it awaits; those with none are left out."""


class Parked(Protocol):
    """The state of a session as a process that waits, with which a later one goes on."""

    @property
    def is_alive(self) -> bool:
        """Whether it still waits."""
        ...

    def close(self) -> None:
        """End it."""
        ...


SessionState = Frozen | Parked


def close_parked(state: SessionState | None) -> None:
    """Let go of a state that nobody will go on with."""
    if state is not None and not isinstance(state, Frozen):
        state.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """How a session begins."""

    state: SessionState | None = None
    """What an earlier one left; None to begin with nothing."""
    seed: str = ""
    """What random numbers of a session without a state come from; by default from chance."""
    is_kept: bool = True
    """Whether its state is wanted when it has ended."""
    clock: Callable[[], float] = time.time
    """What time it is, where guest code asks the host; called from any thread."""
    on_print: OnPrint | None = None
    """Hears what its programs print, as they do and as far as it is kept; in the event loop."""
    caller: str = ""
    """For whom it is: callers get places in turn."""
    is_remote: bool = False
    """Whether that is the holder of a key."""


FRESH: Final = SessionStart()


class Session(Protocol):
    """Guest state, shared by the programs that run in it one after the other."""

    async def run(
        self, program: Program, on_call: OnCall, *, clock: PausableClock | None = None
    ) -> GuestOutcome:
        """Run to the end, or to the first limit.

        `clock` bounds the wall time, by default as the limits say; who pauses it gives the run time
        that does not count.

        Cancelling ends the guest before its next call. Calls that have begun when the code ends
        by itself are waited for; when a limit ends it, they are cancelled.
        """
        ...

    async def settle(self) -> None:
        """Put the files that its program is writing in their places, as far as they are written."""
        ...

    def printed(self) -> str:
        """Return what its program has printed so far, where that can be told before its end."""
        ...

    async def leave(self) -> SessionState | None:
        """Take the state out, as the last thing done with the session; None if it is lost."""
        ...


class Sandbox(Protocol):
    """Makes sessions."""

    def open(
        self,
        modules: Modules,
        names: frozenset[str],
        *,
        files: GuestFiles | None = None,
        session_start: SessionStart = FRESH,
    ) -> AbstractAsyncContextManager[Session]:
        """Open a session.

        It can import `modules`, call `names` without importing them, and use `files`.

        Raises:
            StateLost: It cannot go on with the state that it was given.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding of the type checker. Lines and columns count from 1."""

    rule: str
    message: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checker says of a program before it runs."""

    diagnostics: tuple[Diagnostic, ...] = field(default=())
    refusal: str | None = None
    """Why the interpreter would not take the code at all, in its own words."""


class Checker(Protocol):
    """Checks programs against the stubs of the modules they import. Runs nothing."""

    async def check(self, source: str, *, prelude: str = "") -> Verdict:
        """Check `source`; `prelude` declares names that exist before its first line."""
        ...

    def use(self, modules: Modules) -> None:
        """Check against these modules from now on."""
        ...
