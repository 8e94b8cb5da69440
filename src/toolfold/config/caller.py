"""For whom this process works at the moment: for itself, or for a program that asked it to.

Commands are written as programs that have a directory and an environment. The daemon runs them for
terminals elsewhere, and then those of the terminal count.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CommandCaller:
    """Where a program is, and what of its environment it gave."""

    directory: Path
    environ: Mapping[str, str]


_caller: ContextVar[CommandCaller | None] = ContextVar("caller", default=None)


def current_caller() -> CommandCaller | None:
    """Return whom the code that asks works for; None for this process itself."""
    return _caller.get()


@contextmanager
def acting_for(caller: CommandCaller) -> Iterator[None]:
    """Work for a caller in this context, and in the threads and tasks that it starts."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)
