"""Runs that go on while nobody waits for them."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import anyio
from anyio.abc import TaskGroup

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.errors import RunCrashed, ToolfoldError
from toolfold.execution.report import RunReport

_log = logging.getLogger(__name__)

_MAX_ENDED: Final = 100

OnRunStart = Callable[[str], None]
"""Told the id of a run as it begins."""

BackgroundWork = Callable[[OnRunStart, Elicitor | None], Awaitable[RunReport]]


@dataclass(slots=True, eq=False)
class BackgroundRun:
    """One run, and what came of it when it is over."""

    client: str
    id: str = ""
    result: RunReport | None = None
    error: ToolfoldError | None = None
    over: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    questions: int = 0
    """How many of its questions wait for the user now."""
    is_left: bool = False
    """Whether its client was answered before its end."""

    def outcome(self) -> RunReport:
        """Return the result of a run that is over.

        Raises:
            ToolfoldError: There is none; the message says why.
        """
        if self.error is not None:
            raise self.error
        if self.result is None:
            raise RunCrashed("The run was ended before it came to its end.")
        return self.result


class BackgroundRuns:
    """The runs of one process that are under way, and the last that have ended."""

    def __init__(self) -> None:
        self._runs: dict[str, BackgroundRun] = {}
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have runs go on for the length of this context; those that still do end with it."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def start(
        self, client: str, work: BackgroundWork, ask: Elicitor | None = None
    ) -> BackgroundRun:
        """Begin a run, and return it when it has an id or is over."""
        assert self._tasks is not None, "not running"  # noqa: S101
        run, begun = BackgroundRun(client), anyio.Event()

        def note(run_id: str) -> None:
            run.id = run_id
            self._runs[run_id] = run
            self._forget()
            begun.set()

        async def go() -> None:
            try:
                with run.scope:
                    result = await work(note, ask and _unless_left(run, ask))
                    run.result = None if run.is_left else result  # the journal has it
            except ToolfoldError as error:
                run.error = error
            except Exception:  # noqa: BLE001  # the loop of a background task
                _log.exception("A run ended with an error.")
                run.error = RunCrashed("The run failed in toolfold itself; see `toolfold logs`.")
            finally:
                run.over.set()
                begun.set()

        self._tasks.start_soon(go)
        try:
            await begun.wait()
        except anyio.get_cancelled_exc_class():
            await self.stop(run)
            raise
        return run

    async def wait(self, run: BackgroundRun, seconds: float) -> bool:
        """Wait for the end of a run, but not for longer; return whether it has come.

        Time in which the user is asked something does not count.
        """
        with anyio.move_on_after(seconds):
            await run.over.wait()
        while run.questions and not run.over.is_set():
            with anyio.move_on_after(1.0):
                await run.over.wait()
        return run.over.is_set()

    async def answer(
        self,
        client: str,
        work: BackgroundWork,
        *,
        ask: Elicitor | None,
        patience_s: float,
        is_detached: bool = False,
    ) -> RunReport | BackgroundRun:
        """Run, and return the result; or the run itself, if it goes on for longer than that.

        Cancelling ends it before its next call, unless it is detached.
        """
        run = await self.start(client, work, ask)
        try:
            is_over = await self.wait(run, patience_s)
        except anyio.get_cancelled_exc_class():
            if not is_detached:
                await self.stop(run)
            raise
        if is_over:
            result = run.outcome()
            run.result = None
            return result
        run.is_left = True
        return run

    def find(self, run_id: str) -> BackgroundRun | None:
        """Return a run that is under way, or has ended not long ago."""
        return self._runs.get(run_id)

    async def stop(self, run: BackgroundRun) -> None:
        """End a run before its next call, and wait until it is over."""
        run.scope.cancel()
        with anyio.CancelScope(shield=True):
            await run.over.wait()

    def leave(self, client: str) -> None:
        """End the runs of a client that has left."""
        for run in self._runs.values():
            if run.client == client and not run.over.is_set():
                run.scope.cancel()

    def _forget(self) -> None:
        ended = [run_id for run_id, run in self._runs.items() if run.over.is_set()]
        for run_id in ended[: max(0, len(ended) - _MAX_ENDED)]:
            del self._runs[run_id]


def _unless_left(run: BackgroundRun, ask: Elicitor) -> Elicitor:
    """Ask the user only while the client still waits for the run."""

    async def put(question: Question) -> Reply:
        if run.is_left:
            raise unanswerable(question, "its request was answered before it came to its end")
        run.questions += 1
        try:
            return await ask(question)
        finally:
            run.questions -= 1

    return replace(ask, put=put)
