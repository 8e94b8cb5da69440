"""Runs that go on while nobody waits for them, and requests whose daemon died meanwhile."""

import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import anyio
from anyio.abc import TaskGroup

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.errors import RunCrashed, StoreError, ToolfoldError
from toolfold.execution.report import RunReport, Tally, completed_text, ended_text
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Run
from toolfold.jsontypes import JsonObject

_log = logging.getLogger(__name__)

_MAX_ENDED: Final = 100
_MAX_NEWS: Final = 3
_HOLD_MARGIN_S: Final = 2.0

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
    holds: int = 0
    """How much of it waits for the user, or for another run: its client waits with it."""
    is_left: bool = False
    """Whether its client was answered before its end."""
    printed: str = ""
    """What it had printed when it began to wait."""
    news: anyio.Event = field(default_factory=anyio.Event)
    """Set when it is over, or waits for a person whom its client cannot ask."""
    text: str = "It was ended before it came to its end."
    """Of one whose client was answered, what came of it."""
    is_told: bool = False
    """Whether its client knows that."""
    answer_at: float = math.inf
    """When its client is answered at the latest, unless it waits with the run."""
    can_hold: bool = True
    """Whether its client waits for longer, as long as it hears of progress."""

    @property
    def patience_s(self) -> float:
        """How long a call of it may wait for another run."""
        if self.can_hold:
            return math.inf
        return max(0.0, self.answer_at - anyio.current_time() - _HOLD_MARGIN_S)

    def end(self, result: RunReport) -> None:
        """Take what came of it: of one that was left, what its client is yet to be told."""
        self.result = None if self.is_left else result  # the journal has it
        self.text = result.text or "It printed and returned nothing."

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
        self._ended: deque[str] = deque()
        self._owed: dict[str, list[str]] = {}
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

    async def finish(self) -> None:
        """Wait until every run that is under way is over, those that begin meanwhile too."""
        while under_way := self.under_way:
            for run in under_way:
                await run.over.wait()

    async def start(
        self, client: str, work: BackgroundWork, ask: Elicitor | None = None
    ) -> BackgroundRun:
        """Begin a run, and return it when it has an id or is over."""
        assert self._tasks is not None, "not running"  # noqa: S101
        run, begun = BackgroundRun(client), anyio.Event()

        def note(run_id: str) -> None:
            run.id = run_id
            self._runs[run_id] = run
            begun.set()

        async def go() -> None:
            try:
                with run.scope:
                    run.end(await work(note, ask and _unless_left(run, ask)))
            except ToolfoldError as error:
                run.error = error
            except Exception:  # noqa: BLE001  # the loop of a background task
                _log.exception("A run ended with an error.")
                run.error = RunCrashed("The run failed in toolfold itself; see `toolfold logs`.")
            finally:
                run.over.set()
                run.news.set()
                begun.set()
                self._forget_after(run)

        self._tasks.start_soon(go)
        try:
            await begun.wait()
        except anyio.get_cancelled_exc_class():
            await self.stop(run)
            raise
        return run

    async def wait(self, run: BackgroundRun, seconds: float) -> bool:
        """Wait for the end of a run, but not for longer; return whether it has come.

        Time in which the user is asked something does not count, nor time in which it waits for
        another run.
        """
        with anyio.move_on_after(seconds):
            await run.over.wait()
        while run.holds and not run.over.is_set():
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
        can_hold: bool = True,
    ) -> RunReport | BackgroundRun:
        """Run, and return the result; or the run itself, if it goes on for longer than that.

        Cancelling ends it before its next call, unless it is detached.
        """
        answer_at = anyio.current_time() + patience_s
        run = await self.start(client, work, ask)
        run.answer_at, run.can_hold = answer_at, can_hold
        try:
            is_over = await self._wait_for_news(run, patience_s)
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

    async def _wait_for_news(self, run: BackgroundRun, seconds: float) -> bool:
        """As `wait`, but no longer than until a run waits for somebody who is not at its client."""
        if seconds < math.inf:
            with anyio.move_on_after(seconds):
                await run.news.wait()
            seconds = 0
        return await self.wait(run, seconds)

    def note_wait(self, run_id: str, printed: str) -> None:
        """Take note that a run waits for a person: its client is answered at once."""
        if run := self._runs.get(run_id):
            run.printed = printed
            run.news.set()

    @property
    def under_way(self) -> list[BackgroundRun]:
        """The runs that are not over."""
        return [run for run in self._runs.values() if not run.over.is_set()]

    def find(self, run_id: str) -> BackgroundRun | None:
        """Return a run that is under way, or has ended not long ago."""
        return self._runs.get(run_id)

    @contextmanager
    def holding(self, run_id: str) -> Iterator[float]:
        """Have a run wait for another, and its client with it; say for how long that may be."""
        run = self._runs.get(run_id) or BackgroundRun("")
        run.holds += run.can_hold
        try:
            yield run.patience_s
        finally:
            run.holds -= run.can_hold

    def owe(self, client: str, texts: Iterable[str]) -> None:
        """Have a client told something with its next answer."""
        for text in texts:
            self._owed.setdefault(client, []).append(text)

    def disown(self, client: str, run_id: str) -> None:
        """Tell a client no more of a run that it asks for itself."""
        if client in self._owed:
            self._owed[client] = [text for text in self._owed[client] if run_id not in text]

    def news(self, client: str) -> list[str]:
        """Return what a client has not been told: what came of runs that went on without it.

        A few at a time; the others come with the answer after this.
        """
        ended = [
            run
            for run in self._runs.values()
            if run.client == client and run.is_left and run.over.is_set() and not run.is_told
        ][:_MAX_NEWS]
        for run in ended:
            run.is_told = True
        owed = self._owed.pop(client, [])
        return [*owed, *(ended_text(run.id, str(run.error or run.text)) for run in ended)]

    def told(self, run_id: str) -> None:
        """Note that the client knows what came of a run."""
        if (run := self._runs.get(run_id)) is not None and run.over.is_set():
            run.is_told = True

    async def stop(self, run: BackgroundRun) -> None:
        """End a run before its next call, and wait until it is over."""
        run.scope.cancel()
        with anyio.CancelScope(shield=True):
            await run.over.wait()

    def leave(self, client: str) -> None:
        """End the runs of a client that has left."""
        self._owed.pop(client, None)
        for run in self._runs.values():
            if run.client == client and not run.over.is_set():
                run.scope.cancel()

    def _forget_after(self, run: BackgroundRun) -> None:
        """Keep a run that has ended, and forget the eldest of them."""
        self._ended.append(run.id)
        if len(self._ended) > _MAX_ENDED:
            self._runs.pop(self._ended.popleft(), None)


def _unless_left(run: BackgroundRun, ask: Elicitor) -> Elicitor:
    """Ask the user only while the client still waits for the run."""

    async def put(question: Question) -> Reply:
        if run.is_left:
            raise unanswerable(question, "its request was answered before it came to its end")
        run.holds += 1
        try:
            return await ask(question)
        finally:
            run.holds -= 1

    return replace(ask, put=put)


_MOST: Final = 5


def describe_losses(
    journal: Journal, client: str, requests: Iterable[str]
) -> dict[str, JsonObject | None]:
    """Say of each request of a client what came of it; None where that is not known."""
    try:
        return {request: _describe(journal.latest(client, request)) for request in requests}
    except StoreError as error:
        _log.warning("Calls of lost runs cannot be listed: %s", error)
        return {}


def describe_interrupted(journal: Journal, client: str, requests: Iterable[str]) -> list[str]:
    """Say what became of runs that had gone on when the daemon ended, but for those requests.

    One that somebody goes on with, or has resumed, is left out.
    """
    known = set(requests)
    try:
        return [
            f"The run {run.id}, which was resumed, did not finish. {_lost(run)}"
            for run in journal.interrupted(client, _MOST)
            if run.origin.request not in known and journal.following(run.id).id == run.id
        ]
    except StoreError as error:
        _log.warning("Interrupted runs cannot be listed: %s", error)
        return []


def interrupted_text(journal: Journal, run_id: str) -> str:
    """Say what a run had done when the person who waited for it interrupted it."""
    run = journal.find(run_id)
    return f"Interrupted. {_done(run)} `toolfold runs resume {run.id}` continues it."


def _describe(run: Run | None) -> JsonObject | None:
    if run is None:
        return None
    if run.ending is None:
        return {"text": _lost(run), "isError": True}
    if run.ending.failure == "cancelled":
        return {"text": f"The run was ended with the daemon. {_done(run)}", "isError": True}
    # It had ended, and only the answer was lost.
    return {"text": run.ending.reply.head, "isError": run.ending.failure is not None}


def _lost(run: Run) -> str:
    return (
        "The toolfold daemon ended, and with it this run. "
        f"{_done(run)} One more call may have been in progress. Do not run the code again: "
        f"`import runs; runs.resume({run.id!r})`, or `toolfold runs resume {run.id}`, continues "
        "it without repeating completed calls."
    )


def _done(run: Run) -> str:
    tally = Tally()
    for call in run.calls:
        tally.begin(call.tool)
        if call.outcome == "ok":
            tally.complete(call.tool)
        elif call.outcome == "failed":
            tally.fail(call.tool)
    return completed_text(tally.counts())
