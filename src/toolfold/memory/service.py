"""The verbs of memory. Every door calls these: guest code, scripts, MCP, REST, the command line."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from typing import Final

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.jsontypes import Json
from toolfold.memory.drafts import StoreInput, UpdateFinder, make_change, make_draft, make_drafts
from toolfold.memory.finder import Finder, SearchRequest
from toolfold.memory.inputs import (
    Moment,
    Tags,
    check_hashes,
    check_limit,
    check_moment,
    check_offset,
    check_queries,
    check_share,
    check_tag_match,
    clean_name,
    clean_query,
    clean_tags,
)
from toolfold.memory.models import (
    DEFAULT_TYPE,
    CompactHealthInfo,
    CompactSearchResult,
    Note,
    TagMatch,
    check_prefix,
    shown,
)
from toolfold.memory.note_vectors import NoteVectorizer, UsageCounter
from toolfold.memory.ranking.rank import STOP_WORDS, telling_words
from toolfold.memory.registry import verb
from toolfold.memory.store import Filter, Store
from toolfold.memory.when.phrases import Calendar, describe

DEFAULT_LIMIT: Final = 5
DEFAULT_PAGE: Final = 20

# Of what a search returns, so much is taken to have been of use.
_BEST_SHOWN: Final = 5

# More notes without a vector than these are worth a word: the embedder has changed, or much is new.
_FEW_NOTES: Final = 64


class Memory:
    """What is remembered in one namespace: found again by words, meaning, tags and time.

    Notes are named by their hash; wherever one is taken, so is its beginning, as `search` shows it.
    Tags are one text or a list; commas part them too. Times (`after`, `before`, `created`) are ISO
    8601, a datetime, or seconds since 1970; `after` includes that moment, `before` does not.

    Every verb raises `BadInput` for a value that cannot be used, having changed nothing, and
    `StoreError` when the store does not answer.
    """

    def __init__(
        self,
        store: Store,
        meaning: NoteVectorizer,
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
        zone: tzinfo | None = None,
        week_start: int = 0,
        usage: UsageCounter | None = None,
    ) -> None:
        self._store = store
        self._usage = usage
        self._meaning = meaning
        self._namespace = clean_name(namespace, "namespace")
        self._clock = clock
        self._calendar = Calendar(clock=clock, zone=zone, week_start=week_start)
        self._updates = UpdateFinder(store, self._namespace)
        self._finder = Finder(store, meaning, self._namespace, self._calendar)

    @verb("adds", "POST /memory/notes", wrap="hash", status=201, is_tool=True)
    async def store(
        self,
        content: str,
        tags: Tags | None = None,
        memory_type: str = DEFAULT_TYPE,
        *,
        metadata: Mapping[str, Json] | None = None,
        source: str = "",
        thread: str | None = None,
        position: int | None = None,
        quality: float | None = None,
        created: Moment | None = None,
        supersedes: str | Sequence[str] = (),
        associated: str | Sequence[str] = (),
    ) -> str:
        """Remember a note, and return the first 8 characters of its hash.

        The note is on disk when this returns. Search finds it by words at once, by meaning soon.
        Storing the same content again adds missing tags to the existing note and returns its hash.

        `thread` and `position` give its place in a conversation or document; its neighbours there
        help to find it. `quality`, from 0 to 1, is estimated if not given. Notes that it
        `supersedes` are outdated: search marks them so. A short note that plainly contradicts an
        earlier one on the same subject supersedes it automatically; `reinstate` reverses that.

        Raises:
            NotFound: A note that it supersedes or is associated with is not there.
        """
        given = StoreInput(
            content=content,
            tags=tags,
            memory_type=memory_type,
            metadata=metadata,
            source=source,
            thread=thread,
            position=position,
            quality=quality,
            created=created,
            supersedes=supersedes,
            associated=associated,
        )
        now = self._clock()
        draft = make_draft(given, now=now, zone=self._calendar.zone)
        self._meaning.want(await self._store.add(self._namespace, [draft], now=now))
        await self._updates.follow([draft])
        return shown(draft.hash)

    @verb("adds", is_tool=True, is_command=False)
    async def store_batch(self, notes: Sequence[str | Mapping[str, Json]]) -> tuple[str, ...]:
        """Store several notes, all or none, and return their hashes in the same order.

        Each is a text, or a mapping with the parameters of `store`.

        Raises:
            NotFound: A note that one supersedes or is associated with is not there.
        """
        now = self._clock()
        drafts = make_drafts(notes, now=now, zone=self._calendar.zone)
        self._meaning.want(await self._store.add(self._namespace, drafts, now=now))
        await self._updates.follow(drafts)
        return tuple(shown(draft.hash) for draft in drafts)

    @verb("adds", is_command=False)
    async def remember(
        self,
        content: str,
        memory_type: str = DEFAULT_TYPE,
        tags: Tags | None = None,
        importance: float | None = None,
    ) -> str:
        """Store a note, as `store` does; `importance` is its quality."""
        return await self.store(content, tags, memory_type, quality=importance)

    @verb("reads", "GET /memory/search", is_tool=True)
    async def search(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        tags: Tags | None = None,
        *,
        tag_match: TagMatch = "any",
        memory_type: str | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> CompactSearchResult:
        """Return the notes that match a query, best first; `total` counts all matches.

        A note matches if it, or its neighbour in a conversation, shares a word or the meaning.
        Filters are exact. Scores are from 0 to 1. An empty query lists what passes the filters,
        newest first. With `explain` each note carries the reasons for its rank.
        """
        wanted = self._filter(tags, tag_match, memory_type, after, before)
        [found] = await self._search([query], wanted, limit, min_score, explain)
        return found

    @verb("reads", is_command=False)
    async def search_batch(
        self,
        queries: Sequence[str],
        limit: int = DEFAULT_LIMIT,
        tags: Tags | None = None,
        *,
        tag_match: TagMatch = "any",
        memory_type: str | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> tuple[CompactSearchResult, ...]:
        """Search for several queries at once; return the results in the same order."""
        queries = check_queries(queries, check_limit(limit))
        wanted = self._filter(tags, tag_match, memory_type, after, before)
        return tuple(await self._search(queries, wanted, limit, min_score, explain))

    @verb("reads", is_tool=True, is_command=False)
    async def search_by_tag(
        self,
        tags: Tags,
        match: TagMatch = "any",
        limit: int = DEFAULT_PAGE,
        *,
        memory_type: str | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
    ) -> CompactSearchResult:
        """Return the notes that have any of these tags, or all of them, newest first."""
        if not clean_tags(tags):
            raise BadInput("No tag is given to search for. All notes are in `list`.")
        wanted = self._filter(tags, match, memory_type, after, before)
        [found] = await self._search([""], wanted, limit)
        return found._replace(query=", ".join(wanted.tags))

    @verb("reads", "GET /memory/recall", is_tool=True)
    async def recall(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        tags: Tags | None = None,
        *,
        k: int | None = None,
        tag_match: TagMatch = "any",
        memory_type: str | None = None,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> CompactSearchResult:
        """Search with time in words: "what did we decide last week about auth".

        Where the query names a time, only notes from that time are returned, and those that were
        valid then; the result's query says which time was understood. If the rest of the query
        matches none of them, all are listed, newest first. `k` is another name for `limit`.
        """
        query = clean_query(query)
        time_found = self._calendar.find(query)
        after = before = None
        rest = shown_query = query
        if time_found is not None:
            span = time_found.range
            after, before = span.start.timestamp(), span.end.timestamp()
            rest, shown_query = time_found.rest, f"{query} ({describe(span)})"
            rest = "" if STOP_WORDS.issuperset(telling_words(rest)) else rest
        wanted = self._filter(tags, tag_match, memory_type, after, before)
        limit = limit if k is None else check_limit(k, what="k")
        [found] = await self._search([rest], wanted, limit, min_score, explain)
        if after is not None and before is not None and rest:
            held = _search_request(rest, replace(wanted, after=None), min_score, explain)
            held = replace(held, held_at=(after, before))
            [then] = await self._finder.find([held], limit=limit)
            found = _merged(found, then, limit)
        if time_found is not None and not found.total and not min_score:
            [found] = await self._search([""], wanted, limit, min_score, explain)
        return found._replace(query=shown_query)

    @verb("reads", is_command=False)
    async def search_iter(
        self,
        query: str,
        page_size: int = DEFAULT_PAGE,
        tags: Tags | None = None,
        *,
        tag_match: TagMatch = "any",
        memory_type: str | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> AsyncIterator[CompactSearchResult]:
        """Return all results of `search`, page by page.

        The order is fixed by the first page, so notes written meanwhile neither repeat nor hide
        results. Notes deleted meanwhile are left out.
        """
        if check_limit(page_size, what="page_size") == 0:
            raise BadInput("`page_size` is at least 1.")
        wanted = self._filter(tags, tag_match, memory_type, after, before)
        request = _search_request(query, wanted, min_score, explain)
        async for page in self._finder.pages(request, size=page_size):
            yield page

    @verb("reads", "GET /memory/notes/{hash}", is_tool=True)
    async def get(self, hash: str) -> Note:
        """Return a whole note by its hash, or by a hash it had before an update.

        Archived notes are returned too; `restore` makes them searchable again.

        Raises:
            NotFound: There is none, it is deleted, or there are several, which the message names.
        """
        note = await self._store.get(self._namespace, check_prefix(hash))
        if self._usage is not None:
            self._usage.got(self._namespace, note.hash)
        return note

    @verb("reads", "GET /memory/notes/{hash}/history", wrap="versions")
    async def history(self, hash: str, limit: int = DEFAULT_PAGE) -> tuple[Note, ...]:
        """Return the versions of a note, oldest first; the last one is current.

        Notes that it supersedes come before it: each was valid from `created` to `until`.
        Purged versions are left out.

        Raises:
            NotFound: There is none, or there are several.
        """
        prefix, limit = check_prefix(hash), check_limit(limit)
        versions = await self._store.history(self._namespace, prefix)
        versions = [*await self._superseded(versions[-1], limit), *versions]
        return tuple(versions[max(0, len(versions) - limit) :])

    async def _superseded(self, note: Note, limit: int) -> list[Note]:
        """Return what a note supersedes, directly or not, oldest first; about `limit` at most."""
        found: list[Note] = []
        seen = {note.hash}
        todo = [link.hash for link in note.links if link.kind == "supersedes"]
        while todo and len(found) < limit:
            if (each := todo.pop(0)) in seen:
                continue
            seen.add(each)
            with suppress(NotFound):
                versions = await self._store.history(self._namespace, each)
                found += versions
                todo += [link.hash for link in versions[-1].links if link.kind == "supersedes"]
        return sorted(found, key=lambda version: (version.created, version.version))

    @verb("changes", "POST /memory/notes/{hash}/supersede", wrap="superseded")
    async def supersede(self, hash: str, by: str) -> bool:
        """Mark a note as outdated by another one; return whether it was current.

        Both are kept. Search prefers the current one; questions about the past find the other.

        Raises:
            NotFound: One of them is not there, or there are several.
        """
        older, newer = check_prefix(hash), check_prefix(by)
        return await self._store.supersede(self._namespace, older, newer, is_found=False)

    @verb("changes", "POST /memory/notes/{hash}/reinstate", wrap="reinstated")
    async def reinstate(self, hash: str) -> bool:
        """Mark a superseded note as current again; return whether it was superseded.

        The same note does not supersede it automatically again.

        Raises:
            NotFound: It is not there, or there are several.
        """
        return await self._store.reinstate(self._namespace, check_prefix(hash))

    @verb("changes", "PATCH /memory/notes/{hash}", wrap="hash", is_tool=True)
    async def update(
        self,
        hash: str,
        content: str | None = None,
        *,
        tags: Tags | None = None,
        memory_type: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        source: str | None = None,
        quality: float | None = None,
    ) -> str:
        """Change the given parts of a note, and return its hash; new content has a new hash.

        The previous version is kept: `history` shows it, and its hash still finds the note. Tags
        replace the old ones. Keys of metadata are set one by one; None removes a key.

        Raises:
            NotFound: There is none, it is deleted, or there are several.
        """
        given = {
            "content": content,
            "tags": tags,
            "memory_type": memory_type,
            "metadata": metadata,
            "source": source,
            "quality": quality,
        }
        change, prefix = make_change(given), check_prefix(hash)
        updated = await self._store.update(self._namespace, prefix, change, now=self._clock())
        self._meaning.want([updated.key])
        return shown(updated.note.hash)

    @verb("removes", "DELETE /memory/notes/{hash}", wrap="deleted", is_tool=True)
    async def delete(self, hash: str) -> bool:
        """Delete a note; `restore` brings it back. Return whether it existed.

        Raises:
            NotFound: There are several.
        """
        return await self.delete_batch([hash]) > 0

    @verb("removes", is_command=False)
    async def forget(self, memory_id: str) -> bool:
        """Delete a note, as `delete` does."""
        return await self.delete(memory_id)

    @verb("removes", is_command=False)
    async def delete_batch(self, hashes: Sequence[str]) -> int:
        """Delete several notes, and return how many existed.

        Raises:
            NotFound: One hash could mean several notes; none is deleted then.
        """
        prefixes = check_hashes(hashes)
        return await self._store.delete(self._namespace, prefixes, now=self._clock())

    @verb("removes", is_tool=True, is_command=False)
    async def delete_by_tag(self, tags: Tags, match: TagMatch = "any") -> int:
        """Delete all notes that have any of these tags, or all of them; return how many."""
        wanted = Filter(tags=clean_tags(tags), tag_match=check_tag_match(match))
        if not wanted.tags:
            raise BadInput("No tag is given, so nothing is deleted.")
        return await self._store.delete_matching(self._namespace, wanted, now=self._clock())

    @verb("changes", "POST /memory/notes/{hash}/restore", wrap="restored", is_tool=True)
    async def restore(self, hash: str) -> bool:
        """Restore a deleted note; return whether there was one.

        Raises:
            NotFound: There are several.
        """
        prefixes = check_hashes([hash])
        return await self._store.restore(self._namespace, prefixes, now=self._clock()) > 0

    @verb("destroys", is_for_users=True)
    async def purge(self, hashes: str | Sequence[str]) -> int:
        """Erase notes for good, deleted or not, with all their versions; return how many.

        Nothing of them is left in the files of the store. Copies elsewhere (backups) remain.

        Raises:
            NotFound: One hash could mean several notes; none is erased then.
        """
        prefixes = check_hashes(hashes)
        return await self._store.purge(self._namespace, prefixes, now=self._clock())

    @verb("reads", "GET /memory/health", is_tool=True)
    async def health(self) -> CompactHealthInfo:
        """Return the state of the memory; problems are in `status`, not raised."""
        backend = self._store.backend
        try:
            counts = await self._store.counts(self._namespace)
        except StoreError as error:
            return CompactHealthInfo(str(error), 0, backend, ready=False)
        status = "ok" if self._meaning.trouble is None else str(self._meaning.trouble)
        if not counts.is_warm:
            self._store.warm_soon(self._namespace)
        if status == "ok" and counts.unembedded > _FEW_NOTES:
            status = f"ok; {counts.unembedded} notes wait for their vectors, found by words so far"
        is_ready = counts.unembedded == 0 and counts.is_warm and self._meaning.trouble is None
        return CompactHealthInfo(status, counts.notes, backend, ready=is_ready)

    async def tags(self, limit: int = DEFAULT_PAGE) -> dict[str, int]:
        """Return the tags that most notes have, and how many those are, the most used first."""
        return await self._store.tags(self._namespace, limit=check_limit(limit))

    async def until_ready(self) -> None:
        """Wait until every note is found by its meaning too.

        Before that, `search` goes by words alone for as long as need be: after a start, until the
        model and the vectors are in memory.
        """
        await self._meaning.until_done()
        await self._store.warm(self._namespace)

    @verb("reads", "GET /memory/notes", pages="memories", is_tool=True)
    async def list(
        self,
        limit: int = DEFAULT_PAGE,
        offset: int = 0,
        tags: Tags | None = None,
        *,
        tag_match: TagMatch = "any",
        memory_type: str | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
    ) -> CompactSearchResult:
        """List notes, newest first; `total` counts all that pass the filters."""
        wanted = self._filter(tags, tag_match, memory_type, after, before)
        limit, offset = check_limit(limit), check_offset(offset)
        return await self._finder.newest(
            SearchRequest(query="", wanted=wanted), limit=limit, offset=offset
        )

    async def _search(
        self,
        queries: Sequence[str],
        wanted: Filter,
        limit: int,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> Sequence[CompactSearchResult]:
        wishes = [_search_request(query, wanted, min_score, explain) for query in queries]
        found = await self._finder.find(wishes, limit=check_limit(limit))
        if self._usage is not None:
            for request, result in zip(wishes, found, strict=True):
                if request.query:
                    best = result.memories[:_BEST_SHOWN]
                    self._usage.shown(self._namespace, (each.hash for each in best))
        return found

    def _filter(
        self,
        tags: Tags | None,
        tag_match: TagMatch,
        memory_type: str | None,
        after: Moment | None,
        before: Moment | None,
    ) -> Filter:
        zone = self._calendar.zone
        return Filter(
            tags=clean_tags(tags),
            tag_match=check_tag_match(tag_match),
            type=None if memory_type is None else clean_name(memory_type, "type"),
            after=check_moment(after, "after", zone),
            before=check_moment(before, "before", zone),
        )


def _merged(
    found: CompactSearchResult, more: CompactSearchResult, limit: int
) -> CompactSearchResult:
    best = sorted((*found.memories, *more.memories), key=lambda each: -each.score)
    return found._replace(memories=tuple(best[:limit]), total=found.total + more.total)


def _search_request(query: str, wanted: Filter, min_score: float, explain: bool) -> SearchRequest:
    query = clean_query(query)
    return SearchRequest(
        query=query,
        wanted=wanted,
        min_score=check_share(min_score, "min_score"),
        is_explained=bool(explain),
        shown_query=query,
    )
