"""A run and its calls while they happen, and what is written of them."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from types import TracebackType
from typing import Any, Final

import anyio

from toolfold.catalog.tool import DefinitionText
from toolfold.errors import ToolfoldError, UpstreamTimedOut
from toolfold.journal.decisions import DecisionEvent, RevealEvent
from toolfold.journal.observers import RUN_ID, CallObserver, EndedCall, RunObserver
from toolfold.journal.replay import has_tuples, pack
from toolfold.journal.rows import OfferedTools, RunWriter, own_number
from toolfold.journal.runs import CALLS_BITS, RESUMABLE, CallOutcome, answer_text, tool_text
from toolfold.jsontypes import Json, JsonObject, plain

_INTENT: Final = "INSERT INTO intents (id, tool, arguments, arguments_sha256) VALUES (?, ?, ?, ?)"
_WHOLE: Final = "INSERT INTO wholes (id, text) VALUES (?, ?)"
_CLOCK: Final = "INSERT INTO clocks (id, readings) VALUES (?, ?)"
_PROGRESS: Final = """
    INSERT INTO progress (number, done, total, note) VALUES (?, ?, ?, ?) ON CONFLICT (number)
    DO UPDATE SET done = excluded.done, total = excluded.total, note = excluded.note
"""
_MAX_READINGS: Final = 100_000
_MAX_READ_BYTES: Final = 1 << 20
_MAX_WHOLE_BYTES: Final = 64 << 20
_PROGRESS_S: Final = 0.5

_NOTHING: Final[tuple[str | None, int | None, str | None]] = None, None, None


_TEXT_BYTES: Final = 64 * 1024
_NAME_BYTES: Final = 4 * 1024

encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":")
).encode


def decision_row(decided: DecisionEvent, now: float) -> tuple[object, ...]:
    """Return what is written of a decision beside the run's number."""
    texts = decided.tool, decided.rule, decided.action, decided.by, decided.arguments_sha256
    return (decided.position, *map(name_kept, texts), now)


def as_json(value: Json) -> str:
    """Return a value as JSON, or that it cannot be."""
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        return encode(f"This cannot be written as JSON: {error}")


def name_kept(text: str) -> str:
    """Return what is kept of a name."""
    return text_kept(text, _NAME_BYTES)[0]


def text_kept(text: str, max_bytes: int = _TEXT_BYTES) -> tuple[str, int, str | None]:
    """Return what is kept of a text, the size of the whole, and its hash if that is not all."""
    if len(text) <= max_bytes and text.isascii():
        return text, len(text), None
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        encoded = text.encode("utf-8", "replace")
        text = encoded.decode()
    if len(encoded) <= max_bytes:
        return text, len(encoded), None
    head = encoded[:max_bytes].decode("utf-8", "ignore")
    return head, len(encoded), hashlib.sha256(encoded).hexdigest()


class JournaledRun:
    """Writes what happens in one run: a context, which ends the run if an exception leaves it."""

    def __init__(
        self,
        run_id: str,
        writer: RunWriter,
        *,
        soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float],
        on_end: Callable[[], object] = lambda: None,
        observers: Sequence[RunObserver] = (),
    ) -> None:
        self.id = run_id
        self.observers = observers
        self._outer_run: Token[str] | None = None
        self._on_end = on_end
        self._writer = writer
        self._soon = soon
        self._clock = clock
        self._begun = 0
        self.calling: dict[int, str] = {}
        """The tools that are being called, by the positions of the calls."""
        self._waiting: list[JournaledCall] = []
        self._is_awaited = False
        """Whether what waits is about to be written, come what may."""
        self._allowed: dict[int, tuple[DecisionEvent, float]] = {}
        """By the positions of calls: written with the calls, which makes one transaction of two."""
        self._readings: list[float] = []
        self._readings_written = 0
        self._whole_bytes = 0
        self._is_resumable = False
        """Whether anything is written that only somebody who goes on with it needs."""
        self._progress_at = float("-inf")
        self.unrecorded = 0
        """How many calls were made that could not be written down before."""

    def __enter__(self) -> "JournaledRun":
        """Begin nothing: the beginning is written already."""
        self._outer_run = RUN_ID.set(self.id)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Write the end of a run that did not come to its own."""
        if error is not None:
            is_cancelled = isinstance(error, anyio.get_cancelled_exc_class())
            reply = "" if is_cancelled else f"{type(error).__name__}: {error}"
            self.end(failure="cancelled" if is_cancelled else "crash", reply=reply)
        if self._outer_run is not None:
            RUN_ID.reset(self._outer_run)

    def call(self, tool: str, arguments: JsonObject) -> "JournaledCall":
        """Return a context for one call of a tool, which is written as the context ends."""
        self._begun += 1
        self.calling[self._begun] = tool
        return JournaledCall(self._begun, tool, arguments, self._clock(), self)

    def read_clock(self) -> float:
        """Return the time, and have it written before the next call. May be called from a thread.

        A run that reads it without end is not written any more, and cannot be resumed exactly.
        """
        now = self._clock()
        if self._readings_written + len(self._readings) < _MAX_READINGS:
            self._readings.append(now)
        return now

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Write how far the run says it is, twice a second at most."""
        now = time.monotonic()
        if now - self._progress_at >= _PROGRESS_S or done == total:
            self._progress_at = now
            self._writer.hold_plain(_PROGRESS, (done, total, name_kept(note)), own_number)
            self._writer.flush()

    def send(self, call: "JournaledCall") -> bool:
        """Write what must be known of a call before it is made; tell whether that is on disk.

        That is nothing of one that only reads: it can be made twice without harm.
        """
        if call.is_reading:
            return True
        self._hold_calls()
        self._is_resumable = True
        arguments, _, sha256 = text_kept(call.arguments_text)
        self._writer.hold_plain(_INTENT, (call.tool, arguments, sha256), call.key)
        return self._writer.flush()

    def catch_up(self) -> bool:
        """Write what waits; tell whether all of it is on disk."""
        return self._writer.flush()

    def decide(self, decided: DecisionEvent) -> None:
        """Write what was decided about a call; that it may be made, together with the call."""
        now = self._clock()
        if decided.action == "allow":
            self._allowed[decided.position] = decided, now
            return
        self._hold_calls()
        self._hold_decided(decided, now)
        self._writer.flush()

    def reveal(self, *revealed: RevealEvent) -> None:
        """Write that an upstream, or the user, is shown personal data."""
        self._hold_calls()
        for each in revealed:
            row = each.position, name_kept(each.upstream), name_kept(each.kind), each.count
            self._writer.hold("reveal", (*row, self._clock()), own_number)
        self._writer.flush()

    def offer(self, offer: OfferedTools, *, shown: DefinitionText | None = None) -> None:
        """Have it written which tools there were, and the definitions that the model saw of us."""
        self._writer.offer(offer, shown)

    def end(self, *, failure: str | None, reply: str) -> None:
        """Write how the run ended: the kind of failure if there was one, and what was replied."""
        self._on_end()
        observers, self.observers = self.observers, ()
        for each in observers:
            each.end(failure)
        self._hold_calls()
        for allowed in self._allowed.values():
            self._hold_decided(*allowed)
        kept = text_kept(reply)
        self._writer.hold("end", (self._clock(), failure, *kept), own_number)
        if self._is_resumable and failure not in RESUMABLE:
            self._writer.settle()
        self._writer.flush()
        if kept[2] is not None:
            self._writer.count(own_number, "read", reply)

    def add(self, call: "JournaledCall") -> None:
        """Have a call written that has ended."""
        self._waiting.append(call)
        self.write_soon()

    def write_soon(self) -> None:
        """Have what waits written in a moment, together with what comes until then."""
        if not self._is_awaited:
            self._is_awaited = True
            self._soon(self._write_calls)

    def _write_calls(self) -> None:
        self._is_awaited = False
        self._hold_calls()
        self._writer.flush()

    def _hold_calls(self) -> None:
        written, self._waiting = self._waiting, []
        self._write_readings()
        for call in written:
            if (allowed := self._allowed.pop(call.position, None)) is not None:
                self._hold_decided(*allowed)
            self._writer.hold("call", call.row(), call.key)
            whole = call.whole()
            if whole is not None and self._has_room(call, len(whole)):
                self._is_resumable = True
                self._writer.hold_plain(_WHOLE, (whole,), call.key)
            for part, text in call.cut.items():
                self._writer.count(call.key, part, text)

    def _hold_decided(self, decided: DecisionEvent, now: float) -> None:
        self._writer.hold("decision", decision_row(decided, now), own_number)

    def _has_room(self, call: "JournaledCall", size: int) -> bool:
        """Whether an answer is kept whole: what was only read can be read again."""
        if call.is_reading and size > _MAX_READ_BYTES:
            return False
        self._whole_bytes += size
        return self._whole_bytes <= _MAX_WHOLE_BYTES

    def _write_readings(self) -> None:
        count = len(self._readings)
        if count:
            readings, first = self._readings[:count], self._readings_written
            del self._readings[:count]
            self._readings_written += count
            self._is_resumable = True
            self._writer.hold_plain(
                _CLOCK, (encode(readings),), lambda number: (number << CALLS_BITS) + first
            )


class JournaledCall:
    """One call as it happens. Set `arguments` to what is sent, and `answer` to what comes back."""

    __slots__ = ("_arguments_text", "_began", "_duration_s", "_error", "_observers", "_outcome",
                 "_raised", "_run", "_started_at", "answer", "arguments", "cut", "is_reading",
                 "is_replayed", "position", "tool")  # fmt: skip

    def __init__(
        self,
        position: int,
        tool: str,
        arguments: JsonObject,
        started_at: float,
        run: JournaledRun,
    ) -> None:
        self.answer: Any = None
        self.cut: dict[str, str] = {}
        """What the row does not have whole, by the names that the ledger has for it."""
        self.position = position
        self.is_reading = False
        """Whether the tool only reads."""
        self.is_replayed = False
        """Whether an earlier attempt of the run has made it, and written it down."""
        self.tool = tool
        self.arguments = arguments
        self._started_at = started_at
        self._run = run
        self._arguments_text = ""
        self._raised = ""
        self._observers: Sequence[CallObserver] = ()
        self._outcome: CallOutcome = "ok"
        self._error: str | None = None
        self._began = time.perf_counter()
        self._duration_s = 0.0

    def __enter__(self) -> "JournaledCall":
        """Begin nothing: the clock runs already."""
        if self._run.observers:
            self._observers = [e.call(self.tool, self.position) for e in self._run.observers]
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Have the call written, whichever way it ended."""
        self._duration_s = time.perf_counter() - self._began
        self._run.calling.pop(self.position, None)
        if error is not None:
            is_known = isinstance(error, ToolfoldError)
            self._outcome = "failed" if is_known else "unknown"
            self._error = str(error) if is_known else "The run stopped before the tool answered."
            self._raised = error.code if isinstance(error, ToolfoldError) else ""
        if not self.is_replayed:
            self._run.add(self)
        for each in reversed(self._observers):
            each.end(self._ended())

    def _ended(self) -> EndedCall:
        return EndedCall(self.tool, self._outcome, self._raised, self._duration_s, self.is_replayed)

    def send(self) -> bool:
        """Write down that it is about to be made, and all before; tell whether that is on disk."""
        return self._run.send(self)

    def reveal(self, upstream: str, kinds: Mapping[str, int]) -> None:
        """Write down that it is about to show personal data: how many of each kind, never what."""
        if kinds:
            self._run.reveal(
                *(
                    RevealEvent(position=self.position, upstream=upstream, kind=kind, count=count)
                    for kind, count in kinds.items()
                )
            )

    @property
    def arguments_text(self) -> str:
        """Its arguments as JSON, once they do not change any more."""
        self._arguments_text = self._arguments_text or as_json(self.arguments)
        return self._arguments_text

    def key(self, number: int) -> int:
        """Return its key in the run of that number."""
        return (number << CALLS_BITS) + self.position

    def row(self) -> tuple[Any, ...]:
        """Return what is kept of it beside the key, in the order of the columns."""
        arguments, answer = self.arguments_text, _NOTHING
        kept_arguments = text_kept(arguments)
        if kept_arguments[2] is not None:
            self.cut["written"] = tool_text(self.tool, arguments)
        if self._outcome == "ok":
            answer = text_kept(text := as_json(plain(self.answer)))
            if answer[2] is not None:
                self.cut["read"] = answer_text(text)
        error = None
        if self._error is not None:
            error, size, cut_sha256 = text_kept(self._error)
            if cut_sha256 is not None:  # the model would have read it in place of an answer
                answer = None, size, cut_sha256
                self.cut["read"] = self._error
        times = self._started_at, self._duration_s
        return (self.tool, self._outcome, *kept_arguments, *answer, error, *times)

    def whole(self) -> str | None:
        """Return what its row does not tell and a resumed run needs; None if it tells all."""
        if self._outcome == "ok" and ("read" in self.cut or has_tuples(self.answer)):
            return as_json(pack(self.answer))
        if self._outcome == "failed" and self._raised == UpstreamTimedOut.code:
            return encode(self._raised)
        return None
