"""Drive: one program taken through the interpreter, step by step, in a thread of its own."""

import json
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import pydantic_monty as monty

from toolfold.config.settings import Limits
from toolfold.errors import ValueRejected
from toolfold.jsontypes import Json
from toolfold.sandbox.failures import failure_of
from toolfold.sandbox.files import MontyFiles
from toolfold.sandbox.sandbox import (
    AHEAD,
    MAX_AHEAD,
    GuestCall,
    GuestFailure,
    GuestOutcome,
    OnPrint,
)
from toolfold.sandbox.trees import WORKSPACE
from toolfold.sandbox.values import ValueBudget, admit, admit_for_display

_FILE_NAME: Final = "<python-input-{}>"  # what the interpreter calls the source of a program
_CLOCKS: Final = frozenset({"time.time", "datetime.now", "date.today"})
_STOPPED: Final = -1  # in place of a call's id: wake up, the run is being stopped


class _Stopped(Exception):
    """Leave the loop of `Drive`; the reason is in its `_stop`."""


class HostServices(NamedTuple):
    """What the host offers besides modules: functions that need no import, and files."""

    names: frozenset[str]
    files: MontyFiles | None
    clock: Callable[[], float] = time.time
    on_print: OnPrint | None = None
    """Called in the thread of the `Drive`."""


class Drive:
    """One program driven to its end, in a thread of its own."""

    def __init__(
        self,
        native: monty.MontySession,
        limits: Limits,
        host: "HostServices",
        programs: tuple[int, Mapping[int, frozenset[int]]],
        post: Callable[[int, GuestCall, bool], None],
    ) -> None:
        self.answers: SimpleQueue[tuple[int, dict[str, Any]]] = SimpleQueue()
        self.finished = False
        self._native = native
        self._limits = limits
        self._host = host
        number, awaited = programs
        self._is_first = number == 0  # later programs are where an earlier one went
        self._program = _FILE_NAME.format(number)
        self._awaited = {_FILE_NAME.format(each): calls for each, calls in awaited.items()}
        self._post = post
        self._budget = ValueBudget(
            nodes=limits.value_nodes, depth=limits.value_depth, size_bytes=limits.value_bytes
        )
        self._source = b""
        self._ready: dict[int, dict[str, Any]] = {}
        self._stop: GuestFailure | None = None
        self._in_guest = False
        self._worker: int | None = None
        self._calls = 0
        self._ahead = 0
        self._slept_s = 0.0
        self._waiting_s = 0.0
        self._output = _Output(limits.output_bytes, host.on_print)

    @property
    def was_stopped(self) -> bool:
        """Whether `stop` ended the run, rather than the code itself."""
        return self._stop is not None

    def stop(self, reason: GuestFailure) -> None:
        """End the run before its next step. The first reason holds."""
        if self._stop is not None or self.finished:
            return
        self._stop = reason
        self.answers.put((_STOPPED, {}))
        if self._in_guest and self._worker is not None:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

    def run(self, source: str) -> GuestOutcome:
        """Run `source` to the end and say what came of it. Raises nothing of the guest's."""
        started = time.perf_counter()
        self._worker = self._native.worker_pid
        value: Json = None
        failure: GuestFailure | None = None
        try:
            value = self._display(self._complete(source))
        except _Stopped:
            failure = self._stop
        except ValueRejected as error:
            failure = GuestFailure(
                kind="value", message=f"The value of the last line cannot be shown. {error}"
            )
        except monty.MontyError as error:
            failure = self._stop or failure_of(error, self._limits, self._program)
        finally:
            if self._host.files:
                self._host.files.finish()
        elapsed = time.perf_counter() - started
        return GuestOutcome(
            output=self._output.text,
            output_dropped=self._output.dropped,
            value=value,
            failure=failure,
            guest_s=elapsed - self._waiting_s,
            waiting_s=self._waiting_s,
            program=self._program,
        )

    def _complete(self, source: str) -> monty.MontyComplete:
        self._source = source.encode()
        files = self._host.files
        snapshot = self._resume(
            lambda: self._native.feed_start(
                source,
                print_callback=self._output.write,
                os=files,
                cwd=WORKSPACE if files and self._is_first else None,
            )
        )
        while not isinstance(snapshot, monty.MontyComplete):
            snapshot = self._step(snapshot)
        return snapshot

    def _resume(self, step: Callable[[], monty.SyncSnapshot]) -> monty.SyncSnapshot:
        """Let the guest go on, unless the run has been stopped.

        The flag is raised before `_stop` is read and `stop` reads it after setting `_stop`, so one
        of the two always sees the other.
        """
        self._in_guest = True
        try:
            if self._stop is not None:
                raise _Stopped
            return step()
        finally:
            self._in_guest = False

    def _step(self, snapshot: monty.SyncSnapshot) -> monty.SyncSnapshot:
        if isinstance(snapshot, monty.FunctionSnapshot):
            if snapshot.is_os_function:
                return self._system_call(snapshot)
            return self._call(snapshot)
        if isinstance(snapshot, monty.FutureSnapshot):
            return self._settle(snapshot)
        assert isinstance(snapshot, monty.NameLookupSnapshot)  # noqa: S101
        return self._look_up(snapshot)

    def _call(self, snapshot: monty.FunctionSnapshot) -> monty.SyncSnapshot:
        name = str(snapshot.function_name)
        if name == AHEAD and self._ahead < MAX_AHEAD:
            self._ahead += 1
        else:
            self._count(snapshot.position)
        if "." not in name and name not in self._host.names:
            return self._resume(snapshot.resume_auto)  # a NameError where the code calls it
        is_awaited = self._is_awaited(snapshot.position)
        self._post(snapshot.call_id, self._received(name, snapshot), is_awaited)
        if is_awaited:
            return self._resume(lambda: snapshot.resume({"future": ...}))
        return self._answer(snapshot, self._wait_for(snapshot.call_id))

    def _count(self, position: monty.SourceRange) -> None:
        """Count what the guest asks of the host; names that do not exist are asked for too."""
        self._calls += 1
        if self._calls > self._limits.calls:
            message = f"The run made more than {self._limits.calls:,} tool calls."
            self.stop(GuestFailure(kind="calls", message=message, line=self._line(position)))
            raise _Stopped

    def _received(self, name: str, snapshot: monty.FunctionSnapshot) -> GuestCall:
        try:
            args = admit(_converted(lambda: snapshot.args), self._budget)
            kwargs = admit(_converted(lambda: snapshot.kwargs), self._budget)
        except ValueRejected as error:
            message = f"{name} was not called. {error}"
            self.stop(
                GuestFailure(kind="value", message=message, line=self._line(snapshot.position))
            )
            raise _Stopped from error
        return GuestCall(name, tuple(args), kwargs)  # type: ignore[arg-type]

    def _line(self, position: monty.SourceRange) -> int | None:
        """Return the line of a call in this program; None for one in code that it evaluates."""
        if position.filename != self._program:
            return None
        return self._source.count(b"\n", 0, position.start) + 1

    def _answer(
        self, snapshot: monty.FunctionSnapshot, answer: dict[str, Any]
    ) -> monty.SyncSnapshot:
        return self._give(snapshot.resume, answer)

    def _give(
        self, resume: Callable[[Any], monty.SyncSnapshot], answer: dict[Any, Any]
    ) -> monty.SyncSnapshot:
        """Resume with `answer`. Halves of surrogate pairs, which JSON can spell, become `?`."""
        try:
            return self._resume(lambda: resume(answer))
        except monty.MontyRuntimeError as error:
            # What fails in the guest has frames; this one never got there, and may be repeated.
            if error.traceback() or not str(error).startswith("UnicodeEncodeError"):
                raise
        sound = {key: _as_unicode(value) for key, value in answer.items()}
        return self._resume(lambda: resume(sound))

    def _is_awaited(self, position: monty.SourceRange) -> bool:
        return position.start in self._awaited.get(position.filename, ())

    def _wait_for(self, call_id: int) -> dict[str, Any]:
        while call_id not in self._ready:
            self._receive()
        return self._ready.pop(call_id)

    def _settle(self, snapshot: monty.FutureSnapshot) -> monty.SyncSnapshot:
        """Give the guest every awaited answer that has come, waiting for the first."""
        pending = snapshot.pending_call_ids
        while not (settled := [call_id for call_id in pending if call_id in self._ready]):
            self._receive()
        return self._give(
            snapshot.resume, {call_id: self._ready.pop(call_id) for call_id in settled}
        )

    def _receive(self) -> None:
        """Take at least one answer from the queue, and all that are there."""
        waited_from = time.perf_counter()
        arrived = deque([self.answers.get()])
        self._waiting_s += time.perf_counter() - waited_from
        while not self.answers.empty():
            arrived.append(self.answers.get())
        for call_id, answer in arrived:
            if call_id == _STOPPED:
                raise _Stopped
            self._ready[call_id] = answer

    def _look_up(self, snapshot: monty.NameLookupSnapshot) -> monty.SyncSnapshot:
        name = snapshot.variable_name
        if snapshot.object_id is None and name in self._host.names:
            stand_in = lambda *_: None  # noqa: E731  # the interpreter takes its __name__
            stand_in.__name__ = name
            return self._resume(lambda: snapshot.resume(value=stand_in))
        self._count(snapshot.position)
        return self._resume(snapshot.resume)

    def _system_call(self, snapshot: monty.FunctionSnapshot) -> monty.SyncSnapshot:
        name = str(snapshot.function_name)
        if name in {"import", "import_stubs"} or (self._host.files and _is_file_call(name)):
            return self._resume(snapshot.resume_auto)
        if name.endswith("sleep"):
            return self._sleep(snapshot, is_async=name == "asyncio.sleep")
        if name in _CLOCKS:
            return self._answer(snapshot, {"return_value": self._time(name, snapshot.args)})
        return self._resume(snapshot.resume_not_handled)

    def _time(self, name: str, args: tuple[Any, ...]) -> float | datetime | date:
        now = self._host.clock()
        if name == "time.time":
            return now
        if name == "date.today":
            return datetime.fromtimestamp(now, UTC).date()
        zone = args[0] if args and isinstance(args[0], tzinfo) else None
        moment = datetime.fromtimestamp(now, zone or UTC)
        return moment if zone else moment.replace(tzinfo=None)

    def _sleep(self, snapshot: monty.FunctionSnapshot, *, is_async: bool) -> monty.SyncSnapshot:
        seconds = _seconds(snapshot.args)
        self._slept_s += seconds
        if self._slept_s > self._limits.sleep_s:
            message = f"The run may sleep {self._limits.sleep_s:g} s in all."
            return self._answer(snapshot, {"exc_type": "TimeoutError", "message": message})
        self._post(snapshot.call_id, GuestCall("sleep", (seconds,), {}), is_async)
        if is_async:
            return self._resume(lambda: snapshot.resume({"future": ...}))
        return self._answer(snapshot, self._wait_for(snapshot.call_id))

    def _display(self, end: monty.MontyComplete) -> Json:
        return admit_for_display(_converted(lambda: end.output), self._budget)


def _converted(read: Callable[[], object]) -> object:
    """Return a value of the guest as the interpreter turns it into one of ours.

    Raises:
        ValueRejected: It cannot.
    """
    try:
        return read()
    except (TypeError, ValueError, OverflowError) as error:
        # Objects of guest classes can be keys and members of sets there, but not here.
        raise ValueRejected(f"The value cannot be taken out of the sandbox: {error}.") from error


def _as_unicode(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-8", "replace"))


def _is_file_call(name: str) -> bool:
    return name == "open" or name.startswith(("Path.", "os."))


def _seconds(args: tuple[Any, ...]) -> float:
    seconds = args[0] if args else 0.0
    return max(0.0, float(seconds)) if isinstance(seconds, int | float) else 0.0


class _Output:
    """What the guest printed, up to a limit; the rest is counted and dropped."""

    def __init__(self, limit: int, on_print: OnPrint | None) -> None:
        self._parts: list[str] = []
        self._room = limit
        self._on_print = on_print
        self.dropped = 0

    def write(self, _stream: str, text: str) -> None:
        kept = text[: self._room]
        self._room -= len(kept)
        self.dropped += len(text) - len(kept)
        if kept:
            self._parts.append(kept)
            if self._on_print is not None:
                self._on_print(kept)

    @property
    def text(self) -> str:
        return "".join(self._parts)
