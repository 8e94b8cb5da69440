"""How a run stands, in one word: the same one at every door."""

from typing import Final, Literal, get_args

from toolfold.config.processes import is_alive_since
from toolfold.journal.runs import Run

State = Literal["running", "waiting", "done", "failed", "invalid", "denied", "cancelled", "lost"]
"""running: under way. waiting: paused until you approve a call. done, failed: it ended. invalid:
the check refused the code, and nothing ran. denied: you rejected a call. cancelled: it was
stopped. lost: its process died."""

STATES: Final[tuple[State, ...]] = get_args(State)


def state_of(run: Run, *, is_under_way: bool | None = None) -> State:
    """Return the state of a run; one that was approved has the state of what went on with it.

    `is_under_way` is for a caller that knows; otherwise its process is looked for.
    """
    if run.ending is None:
        return _state_without_end(run, is_under_way)
    match run.ending.failure:
        case None:
            return "done"
        case "approval" if run.latest is not None:
            return state_of(run.latest)
        case "approval" | "rejected" if run.decision in {"rejected", "expired"}:
            return "denied"
        case "approval":
            return "waiting"
        case "rejected":
            return "invalid"
        case "cancelled":
            return "cancelled"
    return "failed"


def _state_without_end(run: Run, is_under_way: bool | None) -> State:
    if is_under_way is None:
        is_under_way = is_alive_since(run.process, run.began_at)
    if not is_under_way:
        return "lost"
    return "waiting" if run.decision == "ask" else "running"
