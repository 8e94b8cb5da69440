"""Who else hears of runs and calls as they happen: traces, metrics, logs. By default nobody."""

from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol

from toolfold.journal.runs import CallOutcome, Origin, RunKind

RUN_ID: Final[ContextVar[str]] = ContextVar("toolfold_run_id", default="")
"""The run that this task works for, for log lines; empty outside of runs."""


class BegunRun(NamedTuple):
    """A run that begins."""

    id: str
    kind: RunKind
    origin: Origin


class EndedCall(NamedTuple):
    """A call that has ended."""

    tool: str
    outcome: CallOutcome
    error: str
    """The code of what failed; empty for what did not, or for a run that stopped meanwhile."""
    duration_s: float
    is_replayed: bool
    """Whether nothing was sent: the journal has the call already, or it was not admitted."""


class CallObserver(Protocol):
    """Hears of one call, in the task that makes it."""

    def end(self, call: EndedCall) -> None:
        """Take that it has ended."""


class RunObserver(Protocol):
    """Hears of one run."""

    def call(self, tool: str, position: int) -> CallObserver:
        """Take that a call begins."""

    def end(self, failure: str | None) -> None:
        """Take that the run has ended, once; `failure` is its kind, None for none."""


class JournalObserver(Protocol):
    """Hears of all runs of a process. It must be quick, and must not raise."""

    def run(self, begun: BegunRun) -> RunObserver:
        """Take that a run begins."""
