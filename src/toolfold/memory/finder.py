"""From a query to notes in one line each, best first."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio.to_thread

from toolfold.memory.hashes import shown
from toolfold.memory.models import (
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    Note,
    preview,
)
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.ranking.rank import DEPTH, Hit, rank
from toolfold.memory.store import Filter, Matches, Query, Store
from toolfold.memory.when.calendar import Calendar

# More than any store holds: every match.
_ALL: Final = 1_000_000_000
_DECIMALS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
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

    def __init__(
        self, store: Store, meaning: NoteVectorizer, namespace: str, calendar: Calendar
    ) -> None:
        self._store = store
        self._meaning = meaning
        self._namespace = namespace
        self._calendar = calendar

    async def find(
        self, wishes: Sequence[SearchRequest], *, limit: int
    ) -> list[CompactSearchResult]:
        """Return the best matches of each wish.

        Raises:
            StoreError: The store does not answer, or the embedder cannot be loaded.
        """
        return [await self._find(request, limit=limit) for request in wishes]

    async def pages(
        self, request: SearchRequest, *, size: int
    ) -> AsyncIterator[CompactSearchResult]:
        """Give all matches in pages; at least one page.

        Which notes these are, and their order, is as it was at the first page. What is deleted
        before its page comes is left out.
        """
        hits, total = await self._order(request)
        for start in range(0, max(len(hits), 1), size):
            memories = await self._load(hits[start : start + size], request)
            yield CompactSearchResult(memories, total, request.shown_query)

    async def newest(
        self, request: SearchRequest, *, limit: int, offset: int = 0
    ) -> CompactSearchResult:
        """Return what passes the filter, whatever the query is, those created last first.

        Raises:
            StoreError: The store does not answer.
        """
        listing = await self._store.newest(
            self._namespace, request.wanted, limit=limit, offset=offset
        )
        memories = tuple(_compact(note, _Listed(0), request) for note in listing.notes)
        return CompactSearchResult(memories, listing.total, request.shown_query)

    async def _find(self, request: SearchRequest, *, limit: int) -> CompactSearchResult:
        if not request.query:
            return await self.newest(request, limit=limit)
        hits: Sequence[Hit | _Listed] = ()
        total = 0

        def choose(matches: Matches) -> list[int]:
            nonlocal hits, total
            found, total = self._ranked(
                matches, request, limit=None if request.min_score else limit
            )
            hits = found[:limit]
            return [hit.key for hit in hits]

        # How many are at least so good, only all of them tell.
        depth = _ALL if request.min_score else max(DEPTH, limit)
        query = await self._query(request)
        notes = await self._store.find(self._namespace, query, choose, depth=depth)
        return CompactSearchResult(_compacts(hits, notes, request), total, request.shown_query)

    async def _order(self, request: SearchRequest) -> "tuple[list[Hit | _Listed], int]":
        if not request.query:
            keys = await self._store.keys(self._namespace, request.wanted)
            return [_Listed(key) for key in keys], len(keys)
        query = await self._query(request)
        matches = await self._store.search(self._namespace, query, depth=_ALL)
        return await anyio.to_thread.run_sync(self._ranked, matches, request)

    async def _query(self, request: SearchRequest) -> Query:
        embed = partial(self._meaning.embed, request.query)
        vector = embed if await self._meaning.is_ready() else None
        return Query(text=request.query, vector=vector, wanted=request.wanted)

    def _ranked(
        self, matches: Matches, request: SearchRequest, limit: int | None = None
    ) -> "tuple[list[Hit | _Listed], int]":
        hits = rank(
            matches.lists,
            created=matches.created,
            quality=matches.quality,
            now=self._calendar.clock(),
            when=self._calendar.span(request.query),
            limit=limit,
        )
        if not request.min_score:
            return list(hits), matches.total
        good = [hit for hit in hits if _shown(hit.score) >= request.min_score]
        return list(good), len(good)

    async def _load(
        self, hits: "Sequence[Hit | _Listed]", request: SearchRequest
    ) -> tuple[CompactMemory | ExplainedMemory, ...]:
        notes = await self._store.load(self._namespace, [hit.key for hit in hits])
        return _compacts(hits, notes, request)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A note that was not searched for by any words: it passes the filter, which is all."""

    key: int
    score: float = 1.0

    def explain(self) -> str:
        return "1.000: passes the filter"


def _compacts(
    hits: Sequence[Hit | _Listed], notes: Mapping[int, Note], request: SearchRequest
) -> tuple[CompactMemory | ExplainedMemory, ...]:
    return tuple(_compact(notes[hit.key], hit, request) for hit in hits if hit.key in notes)


def _compact(
    note: Note, hit: Hit | _Listed, request: SearchRequest
) -> CompactMemory | ExplainedMemory:
    compact = CompactMemory(
        hash=shown(note.hash),
        preview=preview(note.content),
        tags=note.tags,
        created=round(note.created, 3),
        score=_shown(hit.score),
    )
    return ExplainedMemory(*compact, why=hit.explain()) if request.is_explained else compact


def _shown(score: float) -> float:
    """Return a score as it is shown, and as a least one is compared with it."""
    return round(score, _DECIMALS)
