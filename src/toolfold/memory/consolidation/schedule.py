"""Consolidate every namespace now and then, in the background."""

import logging
import math
import secrets
import time
from collections.abc import Callable
from typing import Final

import anyio

from toolfold.errors import BadInput, StoreError
from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.consolidation.store import ConsolidationLease, ConsolidationStore
from toolfold.memory.consolidation.strategies import StrategyName, check_strategy
from toolfold.memory.store import Store

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
