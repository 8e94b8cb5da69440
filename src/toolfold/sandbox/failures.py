"""How runs fail, in our words; and how calls fail, in words that guest code can catch."""

from typing import Final, get_args

import pydantic_monty as monty

from toolfold.config.settings import Limits
from toolfold.errors import BadCall, NotFound, RunError, ToolfoldError, UpstreamTimedOut
from toolfold.sandbox.sandbox import FailureKind, GuestFailure

MESSAGE_CHARS: Final = 4_000
TRACEBACK_CHARS: Final = 8_000
"""The most that is taken of what guest code says of its failure."""

CRASHED: Final = GuestFailure(
    kind="crash",
    message="The process that ran the code died and its variables are lost. "
    "The next run starts afresh.",
)
SESSION_OVER: Final = GuestFailure(
    kind="crash",
    message="An earlier run was stopped, and the session's variables are lost with it. "
    "The next run starts afresh.",
)


def failure_of(error: monty.MontyError, limits: Limits, program: str) -> GuestFailure:
    """Say in our words what the interpreter raised; `program` is what it calls the code's file."""
    if isinstance(error, monty.MontyCrashedError):
        if error.timed_out:
            return too_long(limits)
        return CRASHED
    if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
        return GuestFailure(kind="error", message=str(error))
    message = error.display("type-msg")
    if _ODD_EXCEPTION in message:
        message = "TypeError: an exception takes one text here: put it into one, as in f'{value}'"
    kind = _kind(message)
    if kind == "timeout":
        return too_long(limits)
    if kind == "memory":
        return too_much(limits)
    lines = [frame.line for frame in error.traceback() if frame.filename == program]
    return GuestFailure(
        kind=kind,
        message=message[:MESSAGE_CHARS],
        traceback=error.display("traceback")[-TRACEBACK_CHARS:],
        line=lines[-1] if lines else None,
    )


def too_long(limits: Limits) -> GuestFailure:
    """Say that the code itself ran for too long."""
    return GuestFailure(
        kind="timeout",
        message=f"The code ran for more than {limits.guest_time_s:g} s, tool calls not counted. "
        "Look for an endless loop, or do less in one run.",
    )


def too_much(limits: Limits) -> GuestFailure:
    """Say that the code used too much memory."""
    return GuestFailure(
        kind="memory",
        message=f"The code used more than {limits.memory_bytes >> 20} MB of memory. "
        "Work in smaller pieces.",
    )


def out_of_time(wall_time_s: float) -> GuestFailure:
    """Say that the run took too long, tools included."""
    return GuestFailure(
        kind="timeout",
        message=f"The run took longer than {wall_time_s:g} s of wall time, tools included.",
    )


def failure_kind(error: RunError) -> FailureKind:
    """Return how a run ends that we stop."""
    kind: FailureKind = "error"
    for known in get_args(FailureKind):
        kind = known if known == error.failure else kind
    return kind


def ends_session(failure: GuestFailure | None) -> bool:
    """Whether the worker is gone, or its memory not to be relied on."""
    return failure is not None and failure.kind in {"crash", "memory", "timeout"}


def guest_exception(error: ToolfoldError) -> str:
    """Name the exception that guest code sees; classes of ours could not be caught by name."""
    match error:
        case UpstreamTimedOut():
            return "TimeoutError"
        case BadCall():
            return "TypeError"
        case NotFound():
            return "NameError"
        case _:
            return "RuntimeError"


_ODD_EXCEPTION: Final = "exceptions can only be called with zero or one string argument"
_LIMIT_MESSAGES: tuple[tuple[str, FailureKind], ...] = (
    ("TimeoutError: feed time limit exceeded", "timeout"),
    ("TimeoutError: turn time limit exceeded", "timeout"),
    ("MemoryError: memory limit exceeded", "memory"),
    ("MemoryError: the worker exceeded its memory limit", "memory"),
    ("NotImplementedError: The monty", "unsupported"),
)


def _kind(message: str) -> FailureKind:
    return next((kind for start, kind in _LIMIT_MESSAGES if message.startswith(start)), "error")
