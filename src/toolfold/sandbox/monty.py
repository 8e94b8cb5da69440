"""MontySandbox: guest code in pydantic-monty's interpreter, in worker processes.

The *sync* pool is driven from threads of our own: the async one aborts the host at exit. Code runs
by `feed_start` and `resume`, one step per call to the host, which is several times cheaper than
callbacks. A worker belongs to a session only while the session is open.
"""

# Each call crosses from the worker's thread into the event loop and back. anyio's own crossing
# costs six times the bare one, so this module talks to the loop directly.
import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import pydantic_monty as monty

from toolfold.config.settings import Limits
from toolfold.errors import (
    BadCall,
    NotFound,
    RunError,
    RunTimedOut,
    ToolfoldError,
    UpstreamTimedOut,
    ValueRejected,
)
from toolfold.jsontypes import Json
from toolfold.sandbox.native import native_modules
from toolfold.sandbox.sandbox import (
    Failure,
    FailureKind,
    GuestCall,
    GuestOutcome,
    Modules,
    OnCall,
    Program,
)
from toolfold.sandbox.values import ValueBudget, admit, admit_for_display

_SUSPENSIONS: Final = 1_000_000  # name lookups and imports count too; calls have a limit of ours
_CLOCK_GRACE_S: Final = 1.0
_STOPPED: Final = -1  # in place of a call's id: wake up, the run is being stopped


class MontySandbox:
    """A pool of interpreter processes, started on first use and ended with `running`."""

    def __init__(self, limits: Limits, *, workers: int) -> None:
        self._limits = limits
        self._places = anyio.CapacityLimiter(workers)
        self._threads = anyio.CapacityLimiter(workers)
        self._pool = monty.Monty(
            min_processes=1,
            max_processes=workers,
            feed_duration_limit_grace=_CLOCK_GRACE_S,
            turn_duration_limit_grace=_CLOCK_GRACE_S,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the worker processes for the length of this context."""
        await anyio.to_thread.run_sync(self._pool.__enter__)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._pool.__exit__, None, None, None)

    @asynccontextmanager
    async def open(self, modules: Modules, names: frozenset[str]) -> AsyncIterator["MontySession"]:
        """Open a session on a worker of its own, waiting for one to be free."""
        async with self._places:
            native = self._pool.checkout(
                script_name="code",
                limits=_native_limits(self._limits),
                os_policy={"sleep": "call_host"},
                external_modules=native_modules(modules),
            )
            await anyio.to_thread.run_sync(native.__enter__, limiter=self._threads)
            try:
                yield MontySession(native, names, self._limits, self._threads)
            finally:
                with anyio.CancelScope(shield=True), suppress(monty.MontyError):
                    await anyio.to_thread.run_sync(
                        native.__exit__, None, None, None, limiter=self._threads
                    )


def _native_limits(limits: Limits) -> monty.ResourceLimits:
    return monty.ResourceLimits(
        max_feed_duration_secs=limits.guest_time_s,
        max_memory=limits.memory_bytes,
        max_recursion_depth=limits.recursion_depth,
        max_suspensions=_SUSPENSIONS,
    )


class MontySession:
    """One interpreter's state. Programs run in it one after the other."""

    def __init__(
        self,
        native: monty.MontySession,
        names: frozenset[str],
        limits: Limits,
        threads: anyio.CapacityLimiter,
    ) -> None:
        self._native = native
        self._names = names
        self._limits = limits
        self._threads = threads
        self._awaited: dict[str, frozenset[int]] = {}

    async def run(self, program: Program, on_call: OnCall) -> GuestOutcome:
        """Run `program`; see `Session.run`."""
        loop = asyncio.get_running_loop()
        # Functions of earlier programs are called from later ones: keep what each awaits, under
        # the name that the interpreter gives its source.
        self._awaited[f"<python-input-{len(self._awaited)}>"] = program.awaited
        async with anyio.create_task_group() as calls:

            def start(call_id: int, call: GuestCall) -> None:
                calls.start_soon(_answer, call_id, call, on_call, drive)

            def post(call_id: int, call: GuestCall) -> None:
                loop.call_soon_threadsafe(start, call_id, call)

            drive = _Drive(self._native, self._limits, self._names, self._awaited, post)
            async with _stopping(drive, self._limits.wall_time_s):
                outcome = await anyio.to_thread.run_sync(
                    drive.run, program.source, limiter=self._threads
                )
            if drive.was_stopped:
                calls.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint_if_cancelled()
        return outcome


@asynccontextmanager
async def _stopping(drive: "_Drive", wall_time_s: float) -> AsyncIterator[None]:
    """Stop `drive` when the wall clock runs out, or when the caller is cancelled.

    Waiting for a thread cannot be cancelled; this task can, and it makes the thread end.
    """

    async def watch() -> None:
        try:
            await anyio.sleep(wall_time_s)
            drive.stop(
                "timeout",
                f"The run took longer than {wall_time_s:g} s of wall time, tools included.",
            )
        except anyio.get_cancelled_exc_class():
            drive.stop("cancelled", "The run was cancelled.")
            raise

    async with anyio.create_task_group() as watchers:
        watchers.start_soon(watch)
        yield
        drive.finished = True
        watchers.cancel_scope.cancel()


async def _answer(call_id: int, call: GuestCall, on_call: OnCall, drive: "_Drive") -> None:
    """Answer one call. Whatever happens, the thread that waits for it hears of it."""
    try:
        if call.function == "sleep":
            await anyio.sleep(float(str(call.args[0])))
            answer: dict[str, Any] = {"return_value": None}
        else:
            answer = {"return_value": await on_call(call)}
    except RunError as error:
        drive.stop("value" if isinstance(error, ValueRejected) else "error", str(error))
        return
    except ToolfoldError as error:
        answer = {"exc_type": _guest_exception(error), "message": str(error)}
    drive.answers.put((call_id, answer))


def _guest_exception(error: ToolfoldError) -> str:
    """Name the exception that guest code sees; classes of ours could not be caught by name."""
    match error:
        case UpstreamTimedOut() | RunTimedOut():
            return "TimeoutError"
        case BadCall():
            return "TypeError"
        case NotFound():
            return "NameError"
        case _:
            return "RuntimeError"


class _Stopped(Exception):
    """Leave the loop of `_Drive`; the reason is in its `_stop`."""


class _Drive:
    """One program driven to its end, in a thread of its own."""

    def __init__(
        self,
        native: monty.MontySession,
        limits: Limits,
        names: frozenset[str],
        awaited: Mapping[str, frozenset[int]],
        post: Callable[[int, GuestCall], None],
    ) -> None:
        self.answers: SimpleQueue[tuple[int, dict[str, Any]]] = SimpleQueue()
        self.finished = False
        self._native = native
        self._limits = limits
        self._names = names
        self._awaited = awaited
        self._post = post
        self._budget = ValueBudget(
            nodes=limits.value_nodes, depth=limits.value_depth, size_bytes=limits.value_bytes
        )
        self._ready: dict[int, dict[str, Any]] = {}
        self._stop: Failure | None = None
        self._in_guest = False
        self._worker = native.worker_pid
        self._calls = 0
        self._slept_s = 0.0
        self._waiting_s = 0.0
        self._output = _Output(limits.output_bytes)

    @property
    def was_stopped(self) -> bool:
        """Whether `stop` ended the run, rather than the code itself."""
        return self._stop is not None

    def stop(self, kind: FailureKind, message: str) -> None:
        """End the run before its next step. Called from the event loop; the first reason holds."""
        if self._stop is not None or self.finished:
            return
        self._stop = Failure(kind=kind, message=message)
        self.answers.put((_STOPPED, {}))
        if self._in_guest and self._worker is not None:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

    def run(self, source: str) -> GuestOutcome:
        """Run `source` to the end and say what came of it. Raises nothing of the guest's."""
        started = time.perf_counter()
        value: Json = None
        failure: Failure | None = None
        try:
            value = self._display(self._complete(source))
        except _Stopped:
            failure = self._stop
        except ValueRejected as error:
            failure = Failure(kind="value", message=str(error))
        except monty.MontyError as error:
            failure = self._stop or _failure(error, self._limits)
        elapsed = time.perf_counter() - started
        return GuestOutcome(
            output=self._output.text,
            output_dropped=self._output.dropped,
            value=value,
            failure=failure,
            guest_s=elapsed - self._waiting_s,
            waiting_s=self._waiting_s,
        )

    def _complete(self, source: str) -> object:
        snapshot = self._resume(
            lambda: self._native.feed_start(source, print_callback=self._output.write)
        )
        while not isinstance(snapshot, monty.MontyComplete):
            snapshot = self._step(snapshot)
        return snapshot.output

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
        self._calls += 1
        if self._calls > self._limits.calls:
            self.stop("calls", f"The run made more than {self._limits.calls:,} tool calls.")
            raise _Stopped
        args = admit(snapshot.args, self._budget)
        kwargs = admit(snapshot.kwargs, self._budget)
        self._post(
            snapshot.call_id,
            GuestCall(snapshot.function_name, tuple(args), kwargs),  # type: ignore[arg-type]
        )
        if self._is_awaited(snapshot.position):
            return self._resume(lambda: snapshot.resume({"future": ...}))
        return self._answer(snapshot, self._wait_for(snapshot.call_id))

    def _answer(
        self, snapshot: monty.FunctionSnapshot, answer: dict[str, Any]
    ) -> monty.SyncSnapshot:
        return self._resume(lambda: snapshot.resume(answer))  # type: ignore[arg-type]

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
        answers = {call_id: self._ready.pop(call_id) for call_id in settled}
        return self._resume(lambda: snapshot.resume(answers))  # type: ignore[arg-type]

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
        if snapshot.object_id is None and name in self._names:
            stand_in = lambda *_: None  # noqa: E731  # the interpreter takes its __name__
            stand_in.__name__ = name
            return self._resume(lambda: snapshot.resume(value=stand_in))
        return self._resume(snapshot.resume)

    def _system_call(self, snapshot: monty.FunctionSnapshot) -> monty.SyncSnapshot:
        name = str(snapshot.function_name)
        if name in {"import", "import_stubs"}:
            return self._resume(snapshot.resume_auto)
        if name.endswith("sleep"):
            return self._sleep(snapshot, is_async=name == "asyncio.sleep")
        return self._resume(snapshot.resume_not_handled)

    def _sleep(self, snapshot: monty.FunctionSnapshot, *, is_async: bool) -> monty.SyncSnapshot:
        seconds = _seconds(snapshot.args)
        self._slept_s += seconds
        if self._slept_s > self._limits.sleep_s:
            message = f"The run may sleep {self._limits.sleep_s:g} s in all."
            return self._answer(snapshot, {"exc_type": "TimeoutError", "message": message})
        self._post(snapshot.call_id, GuestCall("sleep", (seconds,), {}))
        if is_async:
            return self._resume(lambda: snapshot.resume({"future": ...}))
        return self._answer(snapshot, self._wait_for(snapshot.call_id))

    def _display(self, value: object) -> Json:
        return admit_for_display(value, self._budget)


def _seconds(args: tuple[Any, ...]) -> float:
    seconds = args[0] if args else 0.0
    return max(0.0, float(seconds)) if isinstance(seconds, int | float) else 0.0


class _Output:
    """What the guest printed, up to a limit; the rest is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self._parts: list[str] = []
        self._room = limit
        self.dropped = 0

    def write(self, _stream: str, text: str) -> None:
        kept = text[: self._room]
        self._room -= len(kept)
        self.dropped += len(text) - len(kept)
        if kept:
            self._parts.append(kept)

    @property
    def text(self) -> str:
        return "".join(self._parts)


def _failure(error: monty.MontyError, limits: Limits) -> Failure:
    """Translate what the interpreter raised."""
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
