"""CPythonSandbox: guest code in a real CPython, in processes behind walls of the kernel.

A session has a process of its own, forked from a warm one and ended with the session; a few wait
ready. Programs and calls go over a socket that the event loop reads itself.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from toolfold.clocks import PausableClock
from toolfold.config.settings import Limits
from toolfold.errors import RunCrashed, RunError, StateLost, ToolfoldError
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.conversation import GuestConversation, HostOffer
from toolfold.sandbox.cpython.kernel import missing_walls
from toolfold.sandbox.cpython.link import FileService, GuestLink
from toolfold.sandbox.cpython.pool import (
    Guest,
    GuestPool,
    Level,
    WallsMissing,
    cpu_allowance_s,
    found_packages,
)
from toolfold.sandbox.failures import (
    CRASHED,
    SESSION_OVER,
    ends_session,
    failure_kind,
    guest_exception,
    out_of_time,
)
from toolfold.sandbox.files import Places
from toolfold.sandbox.sandbox import (
    FRESH,
    GuestFailure,
    GuestFiles,
    GuestOutcome,
    Modules,
    OnCall,
    Program,
    SessionStart,
    SessionState,
)

LEVELS: Final[tuple[Level, ...]] = ("namespaces", "landlock")
_CALLS_AT_ONCE: Final = 100
_HELD_BYTES: Final = 64 << 20


class CPythonSandbox:
    """Processes forked from a warm one, started on first use and ended with `running`."""

    def __init__(
        self,
        limits: Limits,
        *,
        workers: int,
        ready: int = 2,
        levels: tuple[Level, ...] = LEVELS,
    ) -> None:
        self._limits = limits
        self._places = Places(workers)
        self._missing_walls = missing_walls()
        self._pool = GuestPool(levels, ready=ready, cpu_s=cpu_allowance_s(limits.guest_time_s))

    def within(self, limits: Limits) -> "CPythonSandbox":
        """Return a sandbox that uses the same processes under other limits."""
        other = copy(self)
        other._limits = limits  # noqa: SLF001  # it is one of us
        return other

    @property
    def fault(self) -> str | None:
        """Say why guest code cannot run here; None if it can, as far as is known."""
        return self._missing_walls or self._pool.fault

    @property
    def packages(self) -> frozenset[str]:
        """Return the packages beside the standard library that guest code can import."""
        return frozenset(found_packages())

    @property
    def level(self) -> Level | None:
        """Return which walls stand; None before the first session."""
        return self._pool.level

    @property
    def shortfall(self) -> str | None:
        """Say why no better walls stand; None if they do."""
        return self._pool.shortfall

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the processes for the length of this context."""
        async with self._pool.running():
            yield

    async def warm(self) -> None:
        """Start now what would be started with the first session.

        Raises:
            RunCrashed: Guest code cannot run here.
        """
        async with self.open({}, frozenset()):
            pass

    @asynccontextmanager
    async def open(
        self,
        modules: Modules,
        names: frozenset[str],
        *,
        files: GuestFiles | None = None,
        session_start: SessionStart = FRESH,
    ) -> AsyncIterator["CPythonSession"]:
        """Open a session in a process of its own, waiting for a free place.

        Raises:
            RunCrashed: The walls cannot be raised here.
            StateLost: The process with the state is gone.
        """
        async with self._places.held(session_start.caller, is_remote=session_start.is_remote):
            file_service = FileService(files) if files else None
            offer = HostOffer(modules, names, file_service, session_start.on_print)
            if session_start.state is None:
                session = CPythonSession(await self._guest(), self._limits, offer)
            else:
                session = _taken(session_start.state).go_on(offer)
            try:
                yield session
            finally:
                if not session.is_parked:
                    session.close()

    async def _guest(self) -> Guest:
        if why := missing_walls():
            raise RunCrashed(f"Python cannot be confined here: {why}.")
        try:
            return await self._pool.take()
        except WallsMissing as error:
            raise RunCrashed(f"Python cannot be confined here: {error}.") from error


class CPythonSession:
    """One process's state. Programs run in it one after the other."""

    def __init__(self, guest: Guest, limits: Limits, offer: HostOffer) -> None:
        self.guest = guest
        self._limits = limits
        self._offer = offer
        self._link = GuestLink(guest, value_bytes=limits.value_bytes)
        self._link.send(frames.write_message(frames.OPEN, self._opening()))
        self._programs = 0
        self._conversation: GuestConversation | None = None
        self._is_over = False
        self.is_parked = False
        """Whether it waits for a later session, which goes on with it."""

    def _opening(self) -> dict[str, object]:
        limits = self._limits
        return {
            "memory_bytes": limits.memory_bytes,
            "recursion_depth": limits.recursion_depth,
            "output_bytes": limits.output_bytes,
            "budget": {
                "nodes": limits.value_nodes,
                "depth": limits.value_depth,
                "size_bytes": limits.value_bytes,
            },
            "has_files": self._offer.file_service is not None,
        }

    def close(self) -> None:
        """End the process."""
        self._link.close()
        self.guest.close()

    async def run(
        self, program: Program, on_call: OnCall, *, clock: PausableClock | None = None
    ) -> GuestOutcome:
        """Run `program`; see `Session.run`."""
        if self._is_over:
            return GuestOutcome(failure=SESSION_OVER)
        if not self._link.is_open:
            self._is_over = True
            return GuestOutcome(failure=CRASHED)
        clock = clock or PausableClock(self._limits.wall_time_s)
        self._is_over = True  # unless all goes well
        async with anyio.create_task_group() as calls:
            dispatcher = _CallDispatcher(calls, on_call, self._link)
            conversation = GuestConversation(
                self.guest, self._link, self._limits, self._offer, dispatcher.post
            )
            self._conversation = conversation
            offered = (list(self._offer.modules), list(self._offer.names))
            conversation.begin(self._programs, program.source, program.awaited, offered)
            self._programs += 1
            try:
                await _until_end(conversation, dispatcher, clock)
            finally:
                with anyio.CancelScope(shield=True):
                    await self.settle()
            # What the code began and did not wait for has the rest of the wall time.
            if conversation.was_stopped:
                calls.cancel_scope.deadline = -math.inf
            else:
                clock.attach(calls.cancel_scope)
            outcome = (
                await anyio.to_thread.run_sync(conversation.outcome)
                if conversation.is_large
                else conversation.outcome()
            )
        self._is_over = conversation.was_stopped or ends_session(outcome.failure)
        await anyio.lowlevel.checkpoint_if_cancelled()
        if calls.cancel_scope.cancel_called and outcome.failure is None:
            return replace(outcome, failure=out_of_time(clock.limit_s))
        return outcome

    async def settle(self) -> None:
        """Finish files; see `Session.settle`."""
        if self._offer.file_service is not None and self._offer.file_service.is_writing:
            await anyio.to_thread.run_sync(self._offer.file_service.finish)

    def printed(self) -> str:
        """Return what its program has printed so far; see `Session.printed`."""
        return self._conversation.printed if self._conversation else ""

    async def leave(self) -> "CPythonSession | None":
        """Let the process wait, standing still, and return it; see `Session.leave`."""
        if self._is_over or not self.is_alive:
            return None
        self.is_parked = True
        self.guest.stop()
        return self

    @property
    def is_alive(self) -> bool:
        """Whether its process has not ended."""
        return self._link.is_open and self.guest.is_alive

    def go_on(self, offer: HostOffer) -> "CPythonSession":
        """Go on with what this session left, with another offer of the host."""
        offer.imported.update(self._offer.imported)
        offer.paths.update(self._offer.paths)
        self._offer = offer
        self.is_parked = False
        self.guest.go_on()
        return self


def _taken(state: SessionState) -> CPythonSession:
    if not isinstance(state, CPythonSession) or not state.is_parked or not state.is_alive:
        raise StateLost("The process that held them has ended.")
    return state


async def _until_end(
    conversation: GuestConversation, dispatcher: "_CallDispatcher", clock: PausableClock
) -> None:
    """Serve a program until it ends, the wall clock runs out, or the caller is cancelled."""
    try:
        with clock.limiting() as time_limit:
            async with dispatcher.serving(conversation):
                await conversation.ended.wait()
        if time_limit.cancelled_caught:
            conversation.stop(out_of_time(clock.limit_s))
    finally:
        conversation.stop(GuestFailure(kind="cancelled", message="The run was cancelled."))


class _CallDispatcher:
    """Has the calls of a program answered.

    One task serves plain calls, of which there is one at a time unless the guest has threads: a
    task for each would double the cost of a call. Awaited calls get tasks of their own, and so do
    those of threads. Who has very much under way is not heard until some of it is answered.
    """

    def __init__(self, tasks: TaskGroup, on_call: OnCall, link: GuestLink) -> None:
        self._tasks = tasks
        self._on_call = on_call
        self._link = link
        self._next: tuple[int, bytes, int] | None = None
        self._held_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._idle: asyncio.Future[None] | None = None
        self._at_once = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        self._conversation: GuestConversation | None = None

    def post(self, call_id: int, payload: bytes, is_awaited: bool, line: int) -> None:
        """Take a call."""
        self._hold(len(payload))
        if is_awaited or self._idle is None or self._idle.done():
            self._tasks.start_soon(self._answer_beside, call_id, payload, line)
        else:
            self._next = (call_id, payload, line)
            self._idle.set_result(None)

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        self._link.hold(self._held_bytes > _HELD_BYTES)

    @asynccontextmanager
    async def serving(self, conversation: GuestConversation) -> AsyncIterator[None]:
        """Answer plain calls for the length of this context."""
        self._conversation = conversation
        async with anyio.create_task_group() as server:
            server.start_soon(self._serve_plain_calls)
            yield
            server.cancel_scope.cancel()

    async def _serve_plain_calls(self) -> None:
        while True:
            self._idle = self._loop.create_future()
            await self._idle
            assert self._next is not None  # noqa: S101
            await self._answer(*self._next)

    async def _answer_beside(self, call_id: int, payload: bytes, line: int) -> None:
        async with self._at_once:
            await self._answer(call_id, payload, line)
            await self._link.drained()

    async def _answer(self, call_id: int, payload: bytes, line: int) -> None:
        """Answer one call. Whatever happens, the guest that waits for it hears of it."""
        conversation = self._conversation
        assert conversation is not None  # noqa: S101
        if len(payload) > frames.LARGE_BYTES:
            call = await anyio.to_thread.run_sync(conversation.call_of, payload, line)
        else:
            call = conversation.call_of(payload, line)
        if call is None:
            return  # the run is over
        try:
            value = await self._on_call(call)
        except RunError as error:
            kind = failure_kind(error)
            conversation.stop(
                GuestFailure(kind=kind, message=str(error), line=conversation.line(line))
            )
        except ToolfoldError as error:
            conversation.fail(call_id, guest_exception(error), str(error))
        else:
            conversation.answer(call_id, value)
        finally:
            self._hold(-len(payload))
