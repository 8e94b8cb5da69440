"""From a query to notes in one line each, best first."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio.to_thread

from toolfold.memory.models import (
    PREVIEW_CHARS,
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    Note,
    preview,
    shown,
    superseded_by,
)
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.ranking.rank import DEPTH, Hit, rank, telling_words
from toolfold.memory.statements import asks_about_then
from toolfold.memory.store import Filter, Matches, Query, Store
from toolfold.memory.when.phrases import Calendar

_EXCERPT_FROM_CHARS: Final = 8_000
_STEM_CHARS: Final = 5
_MAX_SENTENCES: Final = 20
_SENTENCE: Final = re.compile(
    r"\S.{0,160}?(?:[.!?;:\u3002]+(?=\s)|(?=\n)|\Z)|\S.{0,160}(?=\s)|\S{1,160}", re.DOTALL
)
_WORD: Final = re.compile(r"\w+")

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

    held_at: tuple[float, float] | None = None
    """From when to when: only notes that held then, were made before and are superseded since."""


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
            is_cut = not request.min_score and request.held_at is None
            found, total = self._ranked(matches, request, limit=limit if is_cut else None)
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
            when=request.held_at or self._calendar.span(request.query),
            superseded={key: (old.by, old.until) for key, old in matches.superseded.items()},
            asks_about_then=asks_about_then(request.query),
            limit=limit,
        )
        if request.held_at is not None:
            begin, _ = request.held_at
            ends = {key: old.until for key, old in matches.superseded.items()}
            hits = [
                hit for hit in hits if matches.created[hit.key] < begin < ends.get(hit.key, begin)
            ]
            return list(hits), len(hits)
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
        preview=excerpt(note.content, request.query),
        tags=note.tags,
        created=round(note.created, 3),
        score=_shown(hit.score),
        superseded=_superseded(note),
    )
    if not request.is_explained:
        return compact
    return ExplainedMemory(**compact._asdict(), why=hit.explain())


def excerpt(content: str, query: str) -> str:
    """Return on one line the passage of a text that has most words of a query, or its beginning."""
    wanted = {word[:_STEM_CHARS] for word in telling_words(query)} if query else set()
    if len(content) <= PREVIEW_CHARS or not wanted:
        return preview(content)
    found = [
        (part.span(), wanted & {word[:_STEM_CHARS] for word in _WORD.findall(part[0].lower())})
        for part in _SENTENCE.finditer(content[:_EXCERPT_FROM_CHARS])
    ]
    firsts = [0, *(number for number, (_, words) in enumerate(found) if words)]
    first = max(firsts, key=lambda number: _worth(found[number : number + _MAX_SENTENCES]))
    if first == 0:
        return preview(content)
    return f"…{preview(content[found[first][0][0] :], PREVIEW_CHARS - 1)}"


def _worth(found: "Sequence[tuple[tuple[int, int], set[str]]]") -> float:
    """Return how many words stand in an excerpt that begins with these sentences.

    One counts less where the sentence is cut off: what answers mostly follows the words asked for.
    """
    end = found[0][0][0] + PREVIEW_CHARS - 1 if found else 0
    whole = set().union(*(words for (_, last), words in found if last <= end))
    cut = set().union(*(words for (start, last), words in found if start < end < last))
    return len(whole) + len(cut - whole) / 3


def _superseded(note: Note) -> str:
    if note.until is None or note.superseded_by is None:
        return ""
    return superseded_by(shown(note.superseded_by), note.until)


def _shown(score: float) -> float:
    """Return a score as it is shown, and as a least one is compared with it."""
    return round(score, _DECIMALS)
