"""What was decided about the calls of a run, and what upstreams were shown: rows of the journal."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from toolfold.journal.runs import CALLS_BITS, Call, Run, number_of, state_of
from toolfold.storage.tables import SqlTransaction

DecidedAction = Literal["allow", "ask", "deny", "approved", "rejected", "expired"]
"""What a rule says of a call, and what became of a question."""

_MASK: Final = (1 << CALLS_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionEvent:
    """That a rule, or somebody, decided about a call."""

    position: int
    """Of the call in its run; 0 if it is about the run as a whole."""

    tool: str
    rule: str
    """The rule, as it stands in the policy."""

    action: DecidedAction
    by: str
    """Who: `policy`, `user`, the name of a key."""

    arguments_sha256: str = ""
    """The hash of the call's arguments as the guest gave them: concealed, never revealed.

    Empty where a rule allowed the call: then its own row has them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealEvent:
    """That an upstream, or the user, saw personal data: of which kind, how many. Never what."""

    position: int
    upstream: str
    kind: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDecision:
    """A decision or a reveal, and when it was."""

    what: DecisionEvent | RevealEvent
    at: float


def happened(connection: SqlTransaction, run_id: str) -> list[TimedDecision]:
    """Return what was decided and revealed in a run, in the order in which it was."""
    number = number_of(connection, run_id)
    if number is None:
        return []
    first = number << CALLS_BITS
    keys = first, first | _MASK
    decided = [
        TimedDecision(
            what=DecisionEvent(position=place, tool=tool, rule=rule, action=action, by=by,
                         arguments_sha256=sha256),
            at=at,
        )
        for place, tool, rule, action, by, sha256, at in connection.execute(
            "SELECT position, tool, rule, action, decided_by, arguments_sha256, at"
            " FROM decisions WHERE id BETWEEN ? AND ? ORDER BY id", keys
        )
    ]  # fmt: skip
    revealed = [
        TimedDecision(
            what=RevealEvent(position=place, upstream=upstream, kind=kind, count=count), at=at
        )
        for place, upstream, kind, count, at in connection.execute(
            "SELECT position, upstream, kind, count, at"
            " FROM reveals WHERE id BETWEEN ? AND ? ORDER BY id",
            keys,
        )
    ]
    return sorted(decided + revealed, key=lambda each: each.at)


def steps(
    run: Run, events: Sequence[TimedDecision]
) -> Iterator[tuple[int, list[DecisionEvent | RevealEvent], Call | None]]:
    """Yield every place of a run with what was decided and revealed there, and its call."""
    calls = {call.position: call for call in run.calls}
    for position in sorted(calls.keys() | {each.what.position for each in events}):
        said = [each.what for each in events if each.what.position == position]
        yield position, said, calls.get(position)


def recording_json(run: Run, events: Sequence[TimedDecision]) -> dict[str, Any]:
    """Return one attempt at a run as JSON, step by step."""
    found = [
        {
            "position": position,
            "decisions": [asdict(each) for each in said if isinstance(each, DecisionEvent)],
            "reveals": [asdict(each) for each in said if isinstance(each, RevealEvent)],
            "call": asdict(call) if call else None,
        }
        for position, said, call in steps(run, events)
    ]
    return {
        "id": run.id,
        "began_at": run.began_at,
        "state": state_of(run),
        "code": asdict(run.code),
        "steps": found,
        "ending": asdict(run.ending) if run.ending else None,
    }
