"""What a place for guest code looks like, whichever interpreter is behind it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

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


@dataclass(frozen=True, slots=True)
class GuestCall:
    """One call from guest code to a function of the host. Its values are plain JSON."""

    function: str
    args: tuple[Json, ...]
    kwargs: dict[str, Json]


OnCall = Callable[[GuestCall], Awaitable[Json]]
"""Answers a call. What it raises becomes the guest's exception; a `RunError` ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
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
    failure: Failure | None = None
    guest_s: float = 0.0
    waiting_s: float = 0.0
    program: str = ""
    """What tracebacks call the file of this program."""


class GuestFiles(Protocol):
    """A tree of texts that guest code can read with `open`. Paths are absolute."""

    def entries(self, path: str) -> Sequence[str] | None:
        """Return the names in a directory; None if there is no such directory."""
        ...

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        ...


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


class Sandbox(Protocol):
    """Makes sessions."""

    def open(
        self, modules: Modules, names: frozenset[str], *, files: GuestFiles | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """Open a session.

        It can import `modules`, call `names` without importing them, and read `files`.
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
