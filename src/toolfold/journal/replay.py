"""Replay: answer a run from what was written of an earlier attempt at it.

The code runs once more from its beginning. Calls that had completed are answered as they were, so
that nothing is done twice; the first that is not written down is made.
"""

import hashlib
import json
from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

from toolfold.errors import NotFound, RunError, ToolFailed, UpstreamError, UpstreamTimedOut
from toolfold.journal.runs import CALLS_BITS, RESUMABLE, Call, Run, find, number_of
from toolfold.jsontypes import Json, JsonObject
from toolfold.storage.tables import SqlTransaction

_TUPLE: Final = "$tuple"


def has_tuples(value: Any) -> bool:
    """Whether JSON alone would not bring a value back; those of our own modules begin with one."""
    return isinstance(value, tuple) or (
        isinstance(value, list) and any(isinstance(each, tuple) for each in value)
    )


def pack(value: Any) -> Json:
    """Return a value as JSON from which `unpack` makes it again."""
    if isinstance(value, tuple):
        fields = list(getattr(value, "_fields", ()))
        return {_TUPLE: [type(value).__name__, fields, [pack(each) for each in value]]}
    if isinstance(value, list):
        return [pack(each) for each in value]
    if isinstance(value, dict):
        packed = {name: pack(each) for name, each in value.items()}
        return {_TUPLE: packed} if _TUPLE in packed else packed
    answer: Json = value
    return answer


def unpack(value: Json) -> Any:
    """Return the value that `pack` was given."""
    if isinstance(value, list):
        return [unpack(each) for each in value]
    if isinstance(value, dict):
        match value.get(_TUPLE) if len(value) == 1 else None:
            case [str(name), list(fields), list(parts)]:
                made = tuple(unpack(each) for each in parts)
                return _kind(name, tuple(map(str, fields)))(*made) if fields else made
            case dict(inner):  # one that only looks like it
                return {name: unpack(each) for name, each in inner.items()}
        return {name: unpack(each) for name, each in value.items()}
    return value


@cache
def _kind(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)  # known only now


DoubtDecision = Literal["ask", "repeat", "skip"]
"""What becomes of a call in doubt that may not be repeated without harm."""

_SHOWN_CHARS: Final = 300
_MAX_ATTEMPTS: Final = 1_000
_NOWHERE: Final = -1
_CLOCK_SLACK_S: Final = 0.002  # a call ends a moment after its answer is there

_encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":")
).encode


@dataclass(frozen=True, slots=True)
class UncertainCall:
    """A call that was under way when an attempt ended: it may have happened."""

    position: int
    tool: str
    arguments: str

    def __str__(self) -> str:
        arguments = self.arguments
        if len(arguments) > _SHOWN_CHARS:
            arguments = f"{arguments[:_SHOWN_CHARS]}…"
        return f"call {self.position}, {self.tool} {arguments}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What is written of a run and of those that it went on with."""

    run: Run
    first: str
    """The id of the first attempt."""
    calls: dict[int, Call] = field(default_factory=dict)
    wholes: dict[int, str] = field(default_factory=dict)
    doubts: dict[int, UncertainCall] = field(default_factory=dict)
    hashes: dict[int, str | None] = field(default_factory=dict)
    readings: list[float] = field(default_factory=list)


def read_recorded(connection: SqlTransaction, run_id: str) -> Recorded:
    """Return what is written of a run that did not come to its own end.

    Raises:
        NotFound: There is no such run, or nothing can be resumed.
    """
    found = attempts(connection, run_id)
    last = found[-1]
    if last.kind == "rehearsal":
        raise NotFound(f"The run {last.id} was a dry run, and cannot be resumed; run it again.")
    if last.kind != "code":
        raise NotFound(f"The run {last.id} was not of code, and cannot be resumed.")
    if last.ending and last.ending.failure not in RESUMABLE:
        raise NotFound(f"{_ended_text(last)}; there is nothing to resume.")
    if not last.code.is_whole:
        raise NotFound(
            f"The code of the run {last.id} was cut when recorded; it cannot be resumed."
        )
    recorded = Recorded(run=last, first=found[0].id)
    for attempt in found:
        _add(recorded, connection, attempt)
    return recorded


def _ended_text(last: Run) -> str:
    if earlier := last.start.resumes:
        return f"The run {earlier} was resumed as {last.id}, which has ended"
    return f"The run {last.id} has ended"


def attempts(connection: SqlTransaction, run_id: str) -> list[Run]:
    """Return the runs that it took so far, the first one first.

    Raises:
        NotFound: One of them is not there.
    """
    found = [find(connection, run_id)]
    while earlier := found[0].start.resumes:
        if len(found) >= _MAX_ATTEMPTS:  # what the first ones did must not be forgotten
            raise NotFound(
                f"The run {run_id} was resumed {_MAX_ATTEMPTS} times; it cannot be again."
            )
        found.insert(0, find(connection, earlier))
    return found


def _add(recorded: Recorded, connection: SqlTransaction, attempt: Run) -> None:
    def rows(table: str, columns: str) -> Iterator[Any]:
        statement = f"SELECT id, {columns} FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id"  # noqa: S608
        for key, *values in connection.execute(statement, keys).fetchall():
            yield key & ((1 << CALLS_BITS) - 1), *values

    number = number_of(connection, attempt.id) or 0
    keys = number << CALLS_BITS, (number + 1 << CALLS_BITS) - 1
    hashes = {each: dict(rows(each, "arguments_sha256")) for each in ("intents", "calls")}
    intents = [UncertainCall(*row) for row in rows("intents", "tool, arguments")]
    known = hashes["intents"] | hashes["calls"]
    made = {each.position: _alike(each, known) for each in intents}
    made |= {call.position: _alike(_doubt(call), known) for call in attempt.calls}
    places = {
        position: position
        if _is_free(recorded, position, likeness)
        else (number << CALLS_BITS) + position
        for position, likeness in made.items()
    }
    for intent in intents:
        recorded.doubts[places[intent.position]] = intent
    for call in attempt.calls:
        if call.outcome != "unknown":  # else it is in doubt still, if it was to change something
            recorded.calls[places[call.position]] = call
            recorded.doubts.pop(places[call.position], None)
    recorded.hashes.update((places[position], digest) for position, digest in known.items())
    recorded.wholes.update(
        (places.get(position, position), text) for position, text in rows("wholes", "text")
    )
    for _, readings in rows("clocks", "readings"):
        recorded.readings.extend(json.loads(readings))


def _is_free(recorded: Recorded, position: int, likeness: str) -> bool:
    """Whether a call of a later attempt can be noted at its position.

    Of calls that were made together, another may be there of an attempt before.
    """
    is_taken = position in recorded.calls or position in recorded.doubts
    return not is_taken or _likeness_at(recorded, position) == likeness


class Replay:
    """Answers the calls of one attempt from those before it.

    Where no two of them had been under way together, each must be the same call in the same place.
    Else their order was a matter of time: there each is answered by the first of its like.
    """

    def __init__(self, recorded: Recorded, *, decision: DoubtDecision = "ask") -> None:
        self.run = recorded.run
        self.first = recorded.first
        self.answered = 0
        """How many calls were."""
        self._recorded = recorded
        self._decision = decision
        self._readings = iter(recorded.readings)
        self._left = _by_likeness(recorded) if _overlap(recorded.calls.values()) else None

    @property
    def doubts(self) -> list[UncertainCall]:
        """The calls that were under way when an attempt ended."""
        return list(self._recorded.doubts.values())

    def open_doubts(self, may_repeat: Callable[[str], bool]) -> list[UncertainCall]:
        """Return the calls in doubt about which the user must decide."""
        if self._decision != "ask":
            return []
        return [doubt for doubt in self.doubts if not may_repeat(doubt.tool)]

    def made(self, tool: str) -> int:
        """Return how many calls of a tool were made, or may have been."""
        recorded = self._recorded
        return sum(each.tool == tool for each in recorded.calls.values()) + sum(
            each.tool == tool for each in recorded.doubts.values()
        )

    def left_over(self) -> list[UncertainCall]:
        """Return the calls that were made and not asked for again."""
        return [
            _described(self._recorded, position)
            for positions in (self._left or {}).values()
            for position in positions
        ]

    def answer(
        self, position: int, tool: str, arguments: JsonObject, *, is_reading: bool = False
    ) -> "Answered | None":
        """Return how a call was answered; None if it has to be made.

        Raises:
            RunError: The run does not do what it did.
            UpstreamError: It failed, and does again.
        """
        place = self._place(position, tool, arguments)
        call = self._recorded.calls.get(place)
        if call is None:
            return self._in_doubt(place)
        whole = self._recorded.wholes.get(place)
        if call.outcome == "failed":
            self.answered += 1
            kind: type[UpstreamError] = UpstreamTimedOut if whole else ToolFailed
            raise kind(call.error or "")
        if whole is None and call.answer and not call.answer.is_whole:
            if is_reading:
                return None
            raise RunError(
                "The run cannot be resumed: what "
                f"{UncertainCall(place, tool, call.arguments.head)} answered was too large to be "
                "kept."
            )
        self.answered += 1
        if whole is not None:
            return Answered(unpack(json.loads(whole)))
        return Answered(json.loads(call.answer.head) if call.answer else None)

    def _place(self, position: int, tool: str, arguments: JsonObject) -> int:
        """Return the place of the call that this one was; one that nobody has if it is new."""
        text = _encode(arguments)
        if self._left is not None:
            alike = self._left.get(_likeness(tool, text))
            return alike.popleft() if alike else _NOWHERE
        recorded = self._recorded
        if position in recorded.calls or position in recorded.doubts:
            was = _described(recorded, position)
            if _likeness(tool, text) != _likeness_at(recorded, position):
                raise RunError(
                    f"The run cannot be resumed: the first time it made {was}; now it would make "
                    f"{UncertainCall(position, tool, text)}. Nothing more was called. What it did "
                    f"before is in `toolfold runs {self.run.id}`."
                )
        return position

    def _in_doubt(self, place: int) -> "Answered | None":
        if self._decision == "skip" and place in self._recorded.doubts:
            self.answered += 1
            return Answered(None)
        return None

    def read_clock(self, otherwise: Callable[[], float]) -> float:
        """Return what the clock said then, and the time when that is used up."""
        reading = next(self._readings, None)
        return otherwise() if reading is None else reading


def _overlap(calls: Iterable[Call]) -> bool:
    """Whether two calls had been under way together."""
    end = float("-inf")
    for call in sorted(calls, key=lambda call: call.started_at):
        if call.started_at < end - _CLOCK_SLACK_S:
            return True
        end = max(end, call.started_at + call.duration_s)
    return False


def _by_likeness(recorded: Recorded) -> dict[str, deque[int]]:
    """Return the places of all that was called, by what was called."""
    places: dict[str, deque[int]] = {}
    for position in (*sorted(recorded.calls), *sorted(recorded.doubts)):  # what is known first
        places.setdefault(_likeness_at(recorded, position), deque()).append(position)
    return places


def _likeness(tool: str, arguments: str) -> str:
    digest = hashlib.sha256(arguments.encode("utf-8", "replace")).hexdigest()
    return f"{tool} {digest}"


def _likeness_at(recorded: Recorded, place: int) -> str:
    was = _described(recorded, place)
    return _alike(UncertainCall(place, was.tool, was.arguments), recorded.hashes)


def _alike(call: UncertainCall, hashes: Mapping[int, str | None]) -> str:
    digest = hashes.get(call.position)
    return f"{call.tool} {digest}" if digest else _likeness(call.tool, call.arguments)


def _described(recorded: Recorded, place: int) -> UncertainCall:
    call = recorded.calls.get(place)
    return recorded.doubts[place] if call is None else _doubt(call)


def _doubt(call: Call) -> UncertainCall:
    return UncertainCall(call.position, call.tool, call.arguments.head)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that was given before."""

    value: Any
