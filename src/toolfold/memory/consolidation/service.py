"""The verbs of consolidation."""

import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio.from_thread
import anyio.to_thread

from toolfold.errors import BadInput
from toolfold.memory.consolidation.models import Consolidated, PastConsolidation, Undone
from toolfold.memory.consolidation.store import Applied, ConsolidationStore, Occasion, StoredNote
from toolfold.memory.consolidation.strategies import (
    STRATEGIES,
    Strategy,
    StrategyName,
    check_strategy,
)
from toolfold.memory.inputs import check_limit, clean_name
from toolfold.memory.registry import verb
from toolfold.memory.store import Store

# numpy costs 0.1 s to import, and few consolidate.
if TYPE_CHECKING:
    from toolfold.memory.consolidation.planner import ConsolidationAnalysis
    from toolfold.memory.consolidation.study import StudiedNote
    from toolfold.memory.consolidation.summaries import Summary

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
        """Tidy up notes, and return what was found and done.

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
        """Reverse one consolidation whole, by default the last, and say what came back.

        All notes, versions, tags and links are then exactly as before it. A note that somebody has
        changed since stays as it is, and is named.

        Raises:
            NotFound: There is none to undo.
            BadInput: It is undone already, or a later one changed the same notes: undo that first.
        """
        wanted = None if id is None else clean_name(id, "id of a consolidation")
        return await self._consolidations.undo(self._namespace, wanted, now=self._clock())

    @verb("reads", "GET /consolidation", wrap="consolidations")
    async def consolidations(self, limit: int = DEFAULT_PAST) -> tuple[PastConsolidation, ...]:
        """Return the consolidations of the past, the last first."""
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
        from toolfold.memory.consolidation.report import MAX_LISTED
        from toolfold.memory.consolidation.summaries import summarize

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
