"""What the interpreter raised, as the failure of a run."""

import pydantic_monty as monty

from toolfold.config.settings import Limits
from toolfold.sandbox.sandbox import Failure, FailureKind


def failure_of(error: monty.MontyError, limits: Limits) -> Failure:
    """Say in our words what the interpreter raised."""
    if isinstance(error, monty.MontyCrashedError):
        if error.timed_out:
            return _timed_out(limits)
        return Failure(
            kind="crash",
            message="The process that ran the code died and its variables are lost. "
            "The next run starts afresh.",
        )
    if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
        return Failure(kind="error", message=str(error))
    message = error.display("type-msg")
    kind = _kind(message)
    if kind == "timeout":
        return _timed_out(limits)
    if kind == "memory":
        return Failure(
            kind=kind,
            message=f"The code used more than {limits.memory_bytes >> 20} MB of memory. "
            "Work in smaller pieces.",
        )
    frames = error.traceback()
    return Failure(
        kind=kind,
        message=message,
        traceback=error.display("traceback"),
        line=frames[-1].line if frames else None,
    )


def _timed_out(limits: Limits) -> Failure:
    return Failure(
        kind="timeout",
        message=f"The code ran for more than {limits.guest_time_s:g} s, tool calls not counted. "
        "Look for an endless loop, or do less in one run.",
    )


_LIMIT_MESSAGES: tuple[tuple[str, FailureKind], ...] = (
    ("TimeoutError: feed time limit exceeded", "timeout"),
    ("TimeoutError: turn time limit exceeded", "timeout"),
    ("MemoryError: memory limit exceeded", "memory"),
    ("MemoryError: the worker exceeded its memory limit", "memory"),
    ("NotImplementedError: The monty", "unsupported"),
)


def _kind(message: str) -> FailureKind:
    return next((kind for start, kind in _LIMIT_MESSAGES if message.startswith(start)), "error")
