"""From a query to notes in one line each, best first."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

from toolfold.memory.hashes import shown
from toolfold.memory.meaning import Meaning
from toolfold.memory.models import (
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    Note,
    preview,
)
from toolfold.memory.ranking.rank import DEPTH, Hit, rank
from toolfold.memory.store import Filter, Matches, Query, Store
from toolfold.memory.when.calendar import Calendar

# More than any store holds: every match.
_ALL: Final = 1_000_000_000
_DECIMALS: Final = 3
_QUERIES_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is searched for. Everything in it is clean and within bounds."""

    query: str
    """Empty: whatever passes the filter, those created last first."""

    wanted: Filter
    min_score: float = 0.0
    is_explained: bool = False
    shown_query: str = ""
    """The query as it stands in the result."""


class Finder:
    """Finds notes of one namespace."""

    def __init__(self, store: Store, meaning: Meaning, namespace: str, calendar: Calendar) -> None:
        self._store = store
        self._meaning = meaning
        self._namespace = namespace
        self._calendar = calendar

    async def find(self, wishes: Sequence[Wish], *, limit: int) -> list[CompactSearchResult]:
        """Return the best matches of each wish.

        Raises:
            StoreError: The store does not answer, or the embedder cannot be loaded.
        """
        vectors = await self._vectors([wish.query for wish in wishes])
        return [
            await self._find(wish, vector, limit=limit)
            for wish, vector in zip(wishes, vectors, strict=True)
        ]

    async def pages(self, wish: Wish, *, size: int) -> AsyncIterator[CompactSearchResult]:
        """Give all matches in pages; at least one page.

        Which notes these are, and their order, is as it was at the first page. What is deleted
        before its page comes is left out.
        """
        hits, total = await self._order(wish)
        for start in range(0, max(len(hits), 1), size):
            memories = await self._load(hits[start : start + size], wish)
            yield CompactSearchResult(memories, total, wish.shown_query)

    async def newest(self, wish: Wish, *, limit: int, offset: int = 0) -> CompactSearchResult:
        """Return what passes the filter, whatever the query is, those created last first.

        Raises:
            StoreError: The store does not answer.
        """
        listing = await self._store.newest(self._namespace, wish.wanted, limit=limit, offset=offset)
        memories = tuple(_compact(note, _Listed(0), wish) for note in listing.notes)
        return CompactSearchResult(memories, listing.total, wish.shown_query)

    async def _find(
        self, wish: Wish, vector: list[float] | None, *, limit: int
    ) -> CompactSearchResult:
        if not wish.query:
            return await self.newest(wish, limit=limit)
        asked = Query(text=wish.query, vector=vector, wanted=wish.wanted)
        if wish.min_score:  # how many are as good as that, only all of them tell
            matches = await self._store.search(self._namespace, asked, depth=_ALL)
            hits, total = await anyio.to_thread.run_sync(self._ranked, matches, wish)
        else:
            matches = await self._store.search(self._namespace, asked, depth=max(DEPTH, limit))
            hits, total = self._ranked(matches, wish)
        memories = await self._load(hits[:limit], wish)
        return CompactSearchResult(memories, total, wish.shown_query)

    async def _order(self, wish: Wish) -> "tuple[list[Hit | _Listed], int]":
        if not wish.query:
            keys = await self._store.keys(self._namespace, wish.wanted)
            return [_Listed(key) for key in keys], len(keys)
        [vector] = await self._vectors([wish.query])
        asked = Query(text=wish.query, vector=vector, wanted=wish.wanted)
        matches = await self._store.search(self._namespace, asked, depth=_ALL)
        return await anyio.to_thread.run_sync(self._ranked, matches, wish)

    def _ranked(self, matches: Matches, wish: Wish) -> "tuple[list[Hit | _Listed], int]":
        hits = rank(
            matches.lists,
            created=matches.created,
            quality=matches.quality,
            now=self._calendar.clock(),
            when=self._calendar.span(wish.query),
        )
        if not wish.min_score:
            return list(hits), matches.total
        good = [hit for hit in hits if _shown(hit.score) >= wish.min_score]
        return list(good), len(good)

    async def _load(
        self, hits: "Sequence[Hit | _Listed]", wish: Wish
    ) -> tuple[CompactMemory | ExplainedMemory, ...]:
        notes = await self._store.load(self._namespace, [hit.key for hit in hits])
        return tuple(_compact(notes[hit.key], hit, wish) for hit in hits if hit.key in notes)

    async def _vectors(self, queries: Sequence[str]) -> Sequence[list[float] | None]:
        vectors: dict[str, list[float]] = {}
        asked = list(dict.fromkeys(filter(None, queries)))
        # Some at a time: whoever gives up in between is not waited for.
        for start in range(0, len(asked), _QUERIES_AT_ONCE):
            some = asked[start : start + _QUERIES_AT_ONCE]
            found = await self._meaning.vectors(some)
            vectors |= dict(zip(some, found or (), strict=found is not None))
        return [vectors.get(query) for query in queries]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A note that was not searched for by any words: it passes the filter, which is all."""

    key: int
    score: float = 1.0

    def explain(self) -> str:
        return "1.000: passes the filter"


def _compact(note: Note, hit: Hit | _Listed, wish: Wish) -> CompactMemory | ExplainedMemory:
    compact = CompactMemory(
        hash=shown(note.hash),
        preview=preview(note.content),
        tags=note.tags,
        created=round(note.created, 3),
        score=_shown(hit.score),
    )
    return ExplainedMemory(*compact, why=hit.explain()) if wish.is_explained else compact


def _shown(score: float) -> float:
    """Return a score as it is shown, and as a least one is compared with it."""
    return round(score, _DECIMALS)
