"""Give every note its vector and count its uses, in the background."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol

import anyio
import anyio.to_thread

from toolfold.embedding import Embedder, quantize
from toolfold.errors import StoreError
from toolfold.memory.store import Embedded, Store, in_background

_log = logging.getLogger(__name__)

_NOTES_AT_ONCE: Final = 16
_FEW_S: Final = 0.25
_SWEEP_S: Final = 60.0
_RETRY_S: Final = 5.0


class NoteVectorizer:
    """Knows what texts mean, after a while; one for all namespaces of a store.

    It embeds what this process stores. Now and then it looks for notes without a vector, which a
    process left behind that died; what another is embedding at that moment is then done twice, and
    the first counts.
    """

    def __init__(self, store: Store, embedder: Embedder, *, patience_s: float = 0.0) -> None:
        """A search waits up to `patience_s` for a model that is being loaded.

        It waits less for notes that have no vector yet, and only if they are few.
        """
        self._store = store
        self._embedder = embedder
        self._patience_s = patience_s
        self.trouble: StoreError | None = None
        """Why notes are left without a vector, if they are."""
        self._loaded = anyio.Event()
        self._wanted: dict[int, None] = {}
        self._news = anyio.Event()
        self._rest = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Embed for the length of this context.

        Notes that another embedder has embedded, as after an upgrade, are embedded anew. The old
        model is not there to read a query with, so its vectors are of no use: such notes are found
        by their words until their turn has come. Whoever is killed leaves the rest to the next.
        """
        await self._store.adopt(self._embedder.name, self._embedder.dimensions)
        async with in_background(self._keep_embedding):
            yield

    def want(self, keys: Iterable[int]) -> None:
        """Embed these notes soon."""
        self._wanted |= dict.fromkeys(keys)
        self._news.set()
        if self._rest.is_set():
            self._rest = anyio.Event()

    async def is_ready(self) -> bool:
        """Tell whether texts can be embedded, once what is being loaded or embedded may be there.

        Raises:
            StoreError: It cannot be loaded.
        """
        with anyio.move_on_after(self._patience_s if self.trouble is None else 0):
            await self._loaded.wait()
        if not self._loaded.is_set():
            if self.trouble is not None:
                raise self.trouble
            return False
        if len(self._wanted) <= _NOTES_AT_ONCE:
            with anyio.move_on_after(min(self._patience_s, _FEW_S)):
                await self._rest.wait()  # whoever has just stored a note looks for that too
        return True

    def embed(self, text: str) -> list[float]:
        """Return what a text means. It takes milliseconds, so it is for worker threads."""
        vector: list[float] = self._embedder.embed([text])[0].tolist()
        return vector

    async def until_done(self) -> None:
        """Wait until every note of this process, and all left behind by others, has its vector.

        Raises:
            StoreError: The model cannot be loaded, or the store does not take vectors.
        """
        await self._rest.wait()
        if self.trouble is not None:
            raise self.trouble

    async def _keep_embedding(self) -> None:
        while True:
            try:
                await self._sweep()
                with anyio.move_on_after(_SWEEP_S):
                    await self._serve()
            except StoreError as error:
                _log.warning("Some notes are not found by their meaning: %s", error)
                self.trouble = error
                self._rest.set()
                await anyio.sleep(_RETRY_S)

    async def _sweep(self) -> None:
        """Embed all that has no vector now."""
        if not self._loaded.is_set():
            await anyio.to_thread.run_sync(self._embedder.embed, [""])
            self._loaded.set()
        self.want(await self._store.unembedded())
        await self._embed_wanted()
        self.trouble = None

    async def _serve(self) -> None:
        """Embed what is wanted, as it comes."""
        while True:
            self._rest.set()
            await self._news.wait()
            await self._embed_wanted()

    async def _embed_wanted(self) -> None:
        self._news = anyio.Event()
        while self._wanted:
            keys = list(self._wanted)[:_NOTES_AT_ONCE]
            for key in keys:  # before: one that is changed meanwhile is wanted again
                del self._wanted[key]
            await embed_notes(self._store, self._embedder, keys)


async def embed_notes(store: Store, embedder: Embedder, keys: Sequence[int]) -> None:
    """Give vectors to those of these notes that have none.

    Raises:
        StoreError: The model cannot be loaded, or the store does not take them.
    """
    texts = await store.texts(keys)
    if texts:
        blobs = await anyio.to_thread.run_sync(
            lambda: quantize(embedder.embed([text.content for text in texts]))
        )
        pairs = zip(texts, blobs, strict=True)
        found = [Embedded(text.key, text.hash, blob) for text, blob in pairs]
        await store.embed(embedder.name, found)


async def reembed(store: Store, embedder: Embedder, *, progress: Callable[[int, int], None]) -> int:
    """Make all vectors anew with another embedder, and return how many.

    Notes stay searchable by words meanwhile. Those that this embedder has made stay as they are.

    If this is stopped, calling it again goes on where it was. `progress` is told how many notes are
    done, and of how many.

    Raises:
        StoreError: The model cannot be loaded, or the store does not take vectors.
    """
    await anyio.to_thread.run_sync(embedder.embed, [""])  # before anything is dropped
    await store.adopt(embedder.name, embedder.dimensions)
    keys = await store.unembedded()
    progress(0, len(keys))
    for start in range(0, len(keys), _NOTES_AT_ONCE):
        await embed_notes(store, embedder, keys[start : start + _NOTES_AT_ONCE])
        progress(min(start + _NOTES_AT_ONCE, len(keys)), len(keys))
    return len(keys)


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
