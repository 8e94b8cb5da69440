"""MontySandbox: guest code in pydantic-monty's interpreter, in worker processes.

The *sync* pool is driven from threads of our own: the async one aborts the host at exit. Code runs
by `feed_start` and `resume`, one step per call to the host, which is several times cheaper than
callbacks. A worker belongs to a session only while the session is open.
"""

# Each call crosses from the worker's thread into the event loop and back. anyio's own crossing
# costs six times the bare one, so this module talks to the loop directly.
import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import pydantic_monty as monty
from anyio.abc import TaskGroup

from toolfold.clocks import PausableClock
from toolfold.config.settings import Limits
from toolfold.errors import RunError, StateLost, ToolfoldError
from toolfold.sandbox.drive import Drive, HostServices
from toolfold.sandbox.failures import (
    SESSION_OVER,
    ends_session,
    failure_kind,
    guest_exception,
    out_of_time,
)
from toolfold.sandbox.files import MontyFiles, Places
from toolfold.sandbox.sandbox import (
    FRESH,
    Frozen,
    GuestCall,
    GuestFailure,
    GuestFiles,
    GuestOutcome,
    Modules,
    OnCall,
    OnPrint,
    Program,
    SessionStart,
    SessionState,
)
from toolfold.sandbox.threads import NativeModules, Threads, finished, native_modules
from toolfold.sandbox.walled import walled_binary

_log = logging.getLogger(__name__)

INTERPRETER: Final = f"monty {monty.__version__}"
"""Whose states they are: another version does not take them."""

_SUSPENSIONS: Final = 1_000_000  # name lookups and imports count too; calls have a limit of ours
_CLOCK_GRACE_S: Final = 1.0


class MontySandbox:
    """A pool of interpreter processes, started on first use and ended with `running`."""

    def __init__(self, limits: Limits, *, workers: int) -> None:
        self._limits = limits
        self._places = Places(workers)
        self._threads = Threads(workers)
        self._workers = _Workers(workers)
        self._modules: tuple[Modules, NativeModules] = {}, {}

    def within(self, limits: Limits) -> "MontySandbox":
        """Return a sandbox that uses the same workers under other limits."""
        other = copy(self)
        other._limits = limits  # noqa: SLF001  # it is one of us
        return other

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the worker processes for the length of this context."""
        with self._threads:
            await self._threads.run(self._workers.start)
            try:
                yield
            finally:
                await self._threads.run(self._workers.end)

    @property
    def binary(self) -> Path | None:
        """Return what starts workers behind walls, while `running`; None where nothing does."""
        return self._workers.binary

    @asynccontextmanager
    async def open(
        self,
        modules: Modules,
        names: frozenset[str],
        *,
        files: GuestFiles | None = None,
        session_start: SessionStart = FRESH,
    ) -> AsyncIterator["MontySession"]:
        """Open a session on a worker of its own, waiting for one to be free.

        Raises:
            StateLost: The interpreter does not take the state.
        """
        async with self._places.held(session_start.caller, is_remote=session_start.is_remote):
            native = self._workers.pool.checkout(
                script_name="code",
                limits=_native_limits(self._limits),
                os_policy=_policy(session_start),
                external_modules=self._native_modules(modules),
            )
            handler = MontyFiles(files) if files else None
            host = HostServices(
                names, handler, session_start.clock, _in_loop(session_start.on_print)
            )
            session = MontySession(native, self._limits, host, self._threads, session_start)
            try:
                yield session
            finally:
                await session.close()

    def _native_modules(self, modules: Modules) -> NativeModules:
        """Return modules as the interpreter takes them: the same for all sessions with the same."""
        if self._modules[0] is not modules:
            self._modules = modules, native_modules(modules)
        return self._modules[1]


class _Workers:
    """The worker processes, behind walls where there are some."""

    def __init__(self, most: int) -> None:
        self.binary: Path | None = None
        self._most = most
        self._started = ExitStack()
        self._pool: monty.Monty | None = None

    @property
    def pool(self) -> monty.Monty:
        assert self._pool is not None, "not running"  # noqa: S101
        return self._pool

    def start(self) -> None:
        walled = self._started.enter_context(walled_binary())
        if walled is not None:
            try:
                self._pool = self._start(walled)
            except (monty.MontyError, RuntimeError) as error:
                _log.warning("Monty runs without walls of the kernel: %s", error)
            else:
                self.binary = walled
                return
        self._pool = self._start(None)

    def _start(self, binary: Path | None) -> monty.Monty:
        """Start a pool, and see that a worker comes of it."""
        with ExitStack() as starting:
            pool = starting.enter_context(
                monty.Monty(
                    binary_path=binary,
                    min_processes=1,
                    max_processes=self._most,
                    feed_duration_limit_grace=_CLOCK_GRACE_S,
                    turn_duration_limit_grace=_CLOCK_GRACE_S,
                )
            )
            with pool.checkout(script_name="code"):
                pass
            self._started.push(starting.pop_all())
        return pool

    def end(self) -> None:
        self._started.close()


def _policy(session_start: SessionStart) -> monty.OSPolicy:
    policy: monty.OSPolicy = {"sleep": "call_host", "datetime": "call_host"}
    if session_start.seed:
        policy["random_start"] = {"seed": session_start.seed}
    return policy


def _in_loop(on_print: OnPrint | None) -> OnPrint | None:
    """Return what the thread of a guest calls, in order with what it says of calls and its end."""
    if on_print is None:
        return None
    loop = asyncio.get_running_loop()

    def post(text: str) -> None:
        loop.call_soon_threadsafe(on_print, text)

    return post


def _frozen(state: SessionState | None) -> Frozen:
    if not isinstance(state, Frozen):
        raise StateLost("The session's variables are not those of this interpreter.")
    return state


def _load(native: monty.MontySession, frozen: Frozen) -> None:
    try:
        native.load_session(frozen.state)
    except (monty.MontyError, RuntimeError, ValueError) as error:
        raise StateLost(
            f"The interpreter does not take the session's variables: {error}"
        ) from error


def _native_limits(limits: Limits) -> monty.ResourceLimits:
    return monty.ResourceLimits(
        max_feed_duration_secs=limits.guest_time_s,
        max_memory=limits.memory_bytes,
        max_recursion_depth=limits.recursion_depth,
        max_suspensions=_SUSPENSIONS,
    )


class MontySession:
    """One interpreter's state. Programs run in it one after the other.

    Its worker is taken as the first of them begins, and given back as the last has ended, by the
    thread that runs it: to change threads costs as much as most of what they do.
    """

    def __init__(
        self,
        native: monty.MontySession,
        limits: Limits,
        host: HostServices,
        threads: Threads,
        session_start: SessionStart,
    ) -> None:
        self._native = native
        self._limits = limits
        self._host = host
        self._threads = threads
        self._frozen = _frozen(session_start.state) if session_start.state else None
        self._is_kept = session_start.is_kept
        self._programs = self._frozen.programs if self._frozen else 0
        self._awaited = dict(self._frozen.awaited) if self._frozen else {}
        self._has_worker = False
        self._is_over = False
        self._left: bytes | None = None

    async def run(
        self, program: Program, on_call: OnCall, *, clock: PausableClock | None = None
    ) -> GuestOutcome:
        """Run `program`; see `Session.run`.

        Raises:
            StateLost: The interpreter does not take the state.
        """
        if self._is_over:
            return GuestOutcome(failure=SESSION_OVER)
        clock = clock or PausableClock(self._limits.wall_time_s)
        # Functions of earlier programs are called from later ones: keep what each awaits.
        number = self._programs
        self._programs += 1
        if program.awaited:
            self._awaited[number] = program.awaited
        async with anyio.create_task_group() as calls:
            dispatcher = _CallDispatcher(calls, on_call)
            drive = Drive(
                self._native, self._limits, self._host, (number, self._awaited), dispatcher.post
            )
            ended = self._threads.start(self._drive, drive, program)
            await dispatcher.serve(drive, ended, clock)
            # What the code began and did not wait for has the rest of the wall time.
            if drive.was_stopped:
                calls.cancel_scope.deadline = -math.inf
            else:
                clock.attach(calls.cancel_scope)
        await anyio.lowlevel.checkpoint_if_cancelled()
        outcome = ended.result()
        if calls.cancel_scope.cancel_called and outcome.failure is None:
            return replace(outcome, failure=out_of_time(clock.limit_s))
        return outcome

    def _drive(self, drive: Drive, program: Program) -> GuestOutcome:
        """Run a program, from taking a worker to giving it back. Called in a thread."""
        self._enter()
        try:
            outcome = drive.run(program.source)
        finally:
            drive.finished = True
        self._is_over = drive.was_stopped or ends_session(outcome.failure)
        if program.is_last:
            self._leave()
            self._exit()
        return outcome

    def _enter(self) -> None:
        if not self._has_worker:
            self._native.__enter__()
            self._has_worker = True
            if self._frozen is not None:
                _load(self._native, self._frozen)

    def _leave(self) -> None:
        """Take the state out, if anybody wants it and it is there still."""
        if not self._is_over and self._is_kept and self._left is None:
            try:
                self._left = self._native.dump()
            except monty.MontyError as error:
                _log.warning("The variables of a session could not be taken out: %s", error)
        self._is_over = True

    def _exit(self) -> None:
        if self._has_worker:
            self._has_worker = False
            with suppress(monty.MontyError):
                self._native.__exit__(None, None, None)

    async def settle(self) -> None:
        """Finish files; see `Session.settle`."""
        files = self._host.files
        if files is not None and files.is_writing:
            # Not in a thread of ours: guests who wait for an answer may have all of them.
            await anyio.to_thread.run_sync(files.finish)

    def printed(self) -> str:
        """Return nothing: what it printed is known at its end."""
        return ""

    async def leave(self) -> Frozen | None:
        """Take the state out; see `Session.leave`."""
        if not self._is_over:
            await self._threads.run(self._take_out)
        if self._left is None:
            return None
        return Frozen(state=self._left, programs=self._programs, awaited=self._awaited)

    def _take_out(self) -> None:
        self._enter()
        self._leave()

    async def close(self) -> None:
        """Give the worker back."""
        self._is_over = True
        if self._has_worker:
            await self._threads.run(self._exit)


class _CallDispatcher:
    """Takes calls from the thread of a `Drive` and has them answered in the event loop.

    The guest stands still in a plain call, so there is one at a time, and the task that waits for
    the guest serves them all: a task for each would double the cost of a call. Awaited calls get
    tasks of their own.
    """

    def __init__(self, tasks: TaskGroup, on_call: OnCall) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks = tasks
        self._on_call = on_call
        self._plain: asyncio.Queue[tuple[int, GuestCall] | None] = asyncio.Queue()
        self._drive: Drive | None = None

    def post(self, call_id: int, call: GuestCall, is_awaited: bool) -> None:
        """Take a call. Runs in the thread."""
        self._loop.call_soon_threadsafe(self._start, call_id, call, is_awaited)

    async def serve(
        self, drive: Drive, ended: "asyncio.Future[GuestOutcome]", clock: PausableClock
    ) -> None:
        """Answer the calls of `drive` until it has `ended`.

        It is stopped when the wall clock runs out, and whatever ends the caller: a thread cannot be
        cancelled, but it can be made to end.
        """
        self._drive = drive
        ended.add_done_callback(lambda _ended: self._plain.put_nowait(None))
        try:
            with clock.limiting() as limit:
                await self._serve_plain_calls()
            if limit.cancelled_caught:
                drive.stop(out_of_time(clock.limit_s))
        except BaseException:
            drive.stop(GuestFailure(kind="cancelled", message="The run was cancelled."))
            raise
        finally:
            await finished(ended)

    def _start(self, call_id: int, call: GuestCall, is_awaited: bool) -> None:
        if is_awaited:
            self._tasks.start_soon(self._answer, call_id, call)
        else:
            self._plain.put_nowait((call_id, call))

    async def _serve_plain_calls(self) -> None:
        while (called := await self._plain.get()) is not None:
            await self._answer(*called)

    async def _answer(self, call_id: int, call: GuestCall) -> None:
        """Answer one call. Whatever happens, the thread that waits for it hears of it."""
        assert self._drive is not None  # noqa: S101
        try:
            if call.function == "sleep":
                await anyio.sleep(float(str(call.args[0])))
                answer: dict[str, Any] = {"return_value": None}
            else:
                answer = {"return_value": await self._on_call(call)}
        except RunError as error:
            kind = failure_kind(error)
            self._drive.stop(GuestFailure(kind=kind, message=str(error)))
            return
        except ToolfoldError as error:
            answer = {"exc_type": guest_exception(error), "message": str(error)}
        self._drive.answers.put((call_id, answer))
