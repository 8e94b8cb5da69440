"""Count how often notes are used, without making those wait who use them."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol

import anyio

from toolfold.errors import StoreError
from toolfold.memory.background import in_background

_log = logging.getLogger(__name__)

_FLUSH_S: Final = 30.0
_MAX_WAITING: Final = 10_000


class NoteUse(NamedTuple):
    """That a note was used since it was last written down."""

    namespace: str
    hash: str
    """Its hash, or the beginning of it that is shown."""

    gets: int
    shown: int
    last: float


class UseStore(Protocol):
    """Keeps how often notes were used, and when last."""

    async def add_uses(self, uses: Sequence[NoteUse]) -> None:
        """Add to what is known of these notes; those that are not there are passed over.

        Raises:
            StoreError: The database does not take it.
        """


class UsageCounter:
    """Gathers in memory which notes are used, and has it written down twice a minute.

    What was gathered since is lost when the process is killed: counts are for weighing notes, not
    for accounting, and a search that waited for the disk would be too dear for them.
    """

    def __init__(self, store: UseStore, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[tuple[str, str], NoteUse] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write down what is gathered, for the length of this context and once at its end."""
        async with in_background(self._keep_writing):
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.write()

    def got(self, namespace: str, name: str) -> None:
        """Count that somebody asked for a note by its hash."""
        self._add(namespace, name, gets=1)

    def shown(self, namespace: str, hashes: Iterable[str]) -> None:
        """Count that these notes were the answer to a search."""
        for each in hashes:
            self._add(namespace, each, shown=1)

    async def write(self) -> None:
        """Write down what is gathered; trouble is logged, and those counts are lost."""
        waiting, self._waiting = self._waiting, {}
        if waiting:
            try:
                await self._store.add_uses(list(waiting.values()))
            except StoreError as error:
                _log.warning("How often notes were used is not written down: %s", error)

    def _add(self, namespace: str, name: str, *, gets: int = 0, shown: int = 0) -> None:
        key = (namespace, name)
        before = self._waiting.get(key)
        if before is None:
            if len(self._waiting) >= _MAX_WAITING:
                return
            before = NoteUse(namespace, name, 0, 0, 0.0)
        self._waiting[key] = NoteUse(
            namespace, name, before.gets + gets, before.shown + shown, self._clock()
        )

    async def _keep_writing(self) -> None:
        while True:
            await anyio.sleep(_FLUSH_S)
            await self.write()
