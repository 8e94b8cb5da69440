"""The verbs of consolidation, and doing it now and then in the background."""

import logging
import math
import secrets
import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.from_thread
import anyio.to_thread

from toolfold.errors import BadInput, StoreError
from toolfold.memory.consolidation.models import (
    STRATEGIES,
    Consolidated,
    PastConsolidation,
    Strategy,
    StrategyName,
    Undone,
    check_strategy,
)
from toolfold.memory.consolidation.store import (
    Applied,
    ConsolidationLease,
    ConsolidationStore,
    Occasion,
    StoredNote,
)
from toolfold.memory.inputs import check_limit, clean_name
from toolfold.memory.registry import verb
from toolfold.memory.store import Store

# numpy costs 0.1 s to import, and few consolidate.
if TYPE_CHECKING:
    from toolfold.memory.consolidation.planner import ConsolidationAnalysis
    from toolfold.memory.consolidation.report import Summary
    from toolfold.memory.consolidation.study import StudiedNote

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""

DEFAULT_PAST: Final = 20

_DAY_S: Final = 86_400.0
_NOTES_AT_ONCE: Final = 500
_SUMMARIZED_NOTES: Final = 20
_MAX_DAYS_BACK: Final = 100_000


class Consolidation:
    """Makes order in the notes of one namespace; nothing is destroyed, and all can be undone.

    Every verb raises `BadInput` for a value that cannot be used, having changed nothing, and
    `StoreError` when the store does not answer.
    """

    def __init__(
        self,
        notes: Store,
        consolidations: ConsolidationStore,
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._notes = notes
        self._consolidations = consolidations
        self._namespace = clean_name(namespace, "namespace")
        self._clock = clock

    @verb("changes", "POST /consolidation", is_tool=True)
    async def consolidate(
        self,
        strategy: StrategyName = "balanced",
        days_back: float | None = None,
        dry_run: bool = False,
        *,
        progress: Progress | None = None,
    ) -> Consolidated:
        """Tidy up notes: merge, link and archive them; return what was found and done.

        Notes that say the same in the same words become one, which supersedes the others; notes
        near in meaning are linked; the influence of what is old and not used fades; what is poor
        and was not used for a year is archived: `search` does without it, `get` still returns it.
        Patterns say what many notes speak of together, clusters what notes on one subject say.

        Nothing is destroyed: `restore` brings single notes back, `undo` reverses everything. Notes
        with the tag `important` or `pinned` are never touched, and parts of conversations and
        documents are never hidden.

        `minimal` only finds notes that say the same; `speed` leaves out what compares meanings;
        `quality` finds more than `balanced`, also what is less sure. `days_back` looks only at
        notes created in the last so many days. With `dry_run` nothing is changed.
        """
        name, now = check_strategy(strategy), self._clock()
        since = _since(days_back, now)
        tell = progress or _tell_nobody
        thought = await self._think(STRATEGIES[name], now=now, since=since, progress=tell)
        known = await self._consolidations.known_findings(self._namespace, thought.findings)
        summaries = await self._summaries(thought, tell)
        applied = None
        if thought.looked_at and not dry_run:
            applied = await self._apply(thought, known, name, days_back=days_back, now=now)
        from toolfold.memory.consolidation.report import report

        return report(thought, known, summaries, strategy=name, applied=applied)

    @verb("changes", "POST /consolidation/{id}/undo", is_tool=True)
    async def undo(self, id: str | None = None) -> Undone:
        """Reverse a whole consolidation, by default the last, and return what was restored.

        Notes, versions, tags and links become exactly what they were. A note that was changed
        since stays as it is, and is named.

        Raises:
            NotFound: There is none to undo.
            BadInput: It is undone already, or a later one changed the same notes: undo that first.
        """
        wanted = None if id is None else clean_name(id, "id of a consolidation")
        return await self._consolidations.undo(self._namespace, wanted, now=self._clock())

    @verb("reads", "GET /consolidation", wrap="consolidations")
    async def consolidations(self, limit: int = DEFAULT_PAST) -> tuple[PastConsolidation, ...]:
        """List past consolidations, newest first."""
        limit = check_limit(limit)
        return tuple(await self._consolidations.past(self._namespace, limit=limit))

    async def _think(
        self, strategy: Strategy, *, now: float, since: float | None, progress: Progress
    ) -> "ConsolidationAnalysis":
        studied = await self._study(since, progress)
        stopped = Event()

        def tell(done: int, total: int, what: str) -> None:
            if stopped.is_set():
                raise _Stopped
            anyio.from_thread.run_sync(progress, done, total, what)

        def work() -> "ConsolidationAnalysis":
            from toolfold.memory.consolidation.planner import think

            return think(studied, strategy, now=now, progress=tell)

        try:
            # Thinking takes minutes if notes are many, and nobody waits for it who is cancelled.
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            stopped.set()

    async def _study(self, since: float | None, progress: Progress) -> "list[StudiedNote]":
        """Read all notes, some at a time: whoever writes meanwhile does not wait."""
        from toolfold.memory.consolidation.study import study

        total = (await self._notes.counts(self._namespace)).notes
        studied: list[StudiedNote] = []
        last = 0
        while True:
            progress(min(len(studied), total), total, "reading notes")
            some = await self._consolidations.notes_after(
                self._namespace, last, limit=_NOTES_AT_ONCE, since=since
            )
            if not some:
                return studied
            last = some[-1].key
            studied += await anyio.to_thread.run_sync(_each, study, some)

    async def _summaries(
        self, thought: "ConsolidationAnalysis", progress: Progress
    ) -> "list[Summary]":
        from toolfold.memory.consolidation.report import MAX_LISTED, summarize

        summaries = []
        groups = thought.clusters[:MAX_LISTED]
        for place, group in enumerate(groups):
            progress(place, len(groups), "summing up clusters")
            keys = [note.key for note in group.notes[:_SUMMARIZED_NOTES]]
            notes = await self._notes.load(self._namespace, keys)
            texts = [notes[key].content for key in keys if key in notes]
            summaries.append(
                await anyio.to_thread.run_sync(
                    summarize, texts, thought.occurrences, thought.looked_at
                )
            )
        return summaries

    async def _apply(
        self,
        thought: "ConsolidationAnalysis",
        known: set[bytes],
        strategy: str,
        *,
        days_back: float | None,
        now: float,
    ) -> Applied:
        from toolfold.memory.consolidation.planner import make_plan
        from toolfold.memory.consolidation.report import count

        occasion = Occasion(
            at=now, strategy=strategy, days_back=days_back, counts=count(thought, known)
        )
        return await self._consolidations.apply(self._namespace, make_plan(thought), occasion)


class _Stopped(Exception):
    """Nobody waits for this any more."""


def _each(
    study: "Callable[[StoredNote], StudiedNote]", notes: list[StoredNote]
) -> "list[StudiedNote]":
    return [study(note) for note in notes]


def _since(days_back: object, now: float) -> float | None:
    if days_back is None:
        return None
    if isinstance(days_back, bool) or not isinstance(days_back, int | float):
        raise BadInput(f"`days_back` is a number of days, not {type(days_back).__name__}.")
    if not 0 < days_back <= _MAX_DAYS_BACK:
        raise BadInput(f"`days_back` is a number of days above 0, not {days_back!r}.")
    return now - days_back * _DAY_S


def _tell_nobody(done: int, total: int, what: str) -> None:
    pass


_log = logging.getLogger(__name__)

_HOUR_S: Final = 3_600.0
# A process that died with a turn keeps others from theirs for no longer.
_TURN_S: Final = 6 * _HOUR_S
_LOOK_S: Final = 600.0
_LEAST_WAIT_S: Final = 1.0


async def keep_consolidating(
    notes: Store,
    consolidations: ConsolidationStore,
    *,
    every_hours: float,
    strategy: StrategyName = "balanced",
    clock: Callable[[], float] = time.time,
) -> None:
    """Consolidate each namespace whenever its last consolidation was that long ago; never return.

    When that was stands in the store, so restarts do not matter; of several processes, one does it.
    One that somebody undid is not done again. Trouble is logged, and tried again later.

    Raises:
        BadInput: The strategy or the number of hours cannot be used.
    """
    if isinstance(every_hours, bool) or not 0 < every_hours < math.inf:
        raise BadInput(f"`every_hours` is a number above 0, not {every_hours!r}.")
    schedule = Schedule(
        notes,
        consolidations,
        every_s=every_hours * _HOUR_S,
        strategy=check_strategy(strategy),
        clock=clock,
    )
    while True:
        wait_s = await schedule.run_due()
        await anyio.sleep(wait_s)


class Schedule:
    """Knows what is due."""

    def __init__(
        self,
        notes: Store,
        consolidations: ConsolidationStore,
        *,
        every_s: float,
        strategy: StrategyName,
        clock: Callable[[], float],
    ) -> None:
        self._notes = notes
        self._consolidations = consolidations
        self._every_s = every_s
        self._strategy = strategy
        self._clock = clock
        self._holder = secrets.token_hex(8)

    async def run_due(self) -> float:
        """Consolidate all namespaces that are due, and return how many seconds to wait."""
        wait_s = _LOOK_S
        try:
            for namespace in await self._consolidations.namespaces():
                wait_s = min(wait_s, await self._run_if_due(namespace))
        except StoreError as error:
            _log.warning("A consolidation was not made: %s", error)
        except Exception:  # noqa: BLE001  # the loop of a background task
            _log.exception("A consolidation went wrong; its notes are as they were.")
        return max(wait_s, _LEAST_WAIT_S)

    async def _run_if_due(self, namespace: str) -> float:
        now = self._clock()
        turn = ConsolidationLease(namespace, self._holder, now + _TURN_S)
        wait_s = await self._consolidations.take_turn(turn, now=now, every_s=self._every_s)
        if wait_s > 0:
            return wait_s
        try:
            service = Consolidation(
                self._notes, self._consolidations, namespace=namespace, clock=self._clock
            )
            done = await service.consolidate(self._strategy)
            _log.info("Consolidated the notes of %s: %r", namespace, done.counts)
        finally:
            with anyio.CancelScope(shield=True):
                await self._consolidations.end_turn(turn)
        return self._every_s
