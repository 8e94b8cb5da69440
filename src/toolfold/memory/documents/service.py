"""The verbs of documents: from files to chunks to notes. Every door calls these."""

import hashlib
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio.to_thread

from toolfold.errors import BadInput, NotFound
from toolfold.jsontypes import JsonObject
from toolfold.memory.documents.chunks import Chunk
from toolfold.memory.documents.kinds import Unreadable
from toolfold.memory.documents.models import (
    NOTE_TYPE,
    CompactDocuments,
    Document,
    DocumentStore,
    Failure,
    Ingested,
    Placed,
    compact,
)
from toolfold.memory.documents.paths import (
    MAX_FILES,
    Candidate,
    Selection,
    check_name,
    expected,
    find_files,
    locate,
    read_file,
    shown_path,
)
from toolfold.memory.documents.reader_process import ReaderProcess
from toolfold.memory.drafts import StoreInput, make_draft
from toolfold.memory.inputs import Tags, check_limit, check_offset, clean_name, clean_tags
from toolfold.memory.models import Draft
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.registry import verb

STEP: Final = 1 << 20
"""Between two chunks that are placed afresh; so often, and more, one fits between them."""


def place(kept: Sequence[Placed], contents: Sequence[str]) -> list[int]:
    """Return a position for each content, in ascending order.

    A content that is kept stays where it is, as far as the order allows. Places in between are
    halved; where no place is left, all are placed afresh.
    """
    positions: list[int | None] = [None] * len(contents)
    for new, old in _common(kept, contents):
        positions[new] = kept[old].position
    try:
        return _filled(positions)
    except _NoPlace:
        return [STEP * (number + 1) for number in range(len(contents))]


class _NoPlace(Exception):
    pass


def _common(kept: Sequence[Placed], contents: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of the same content, new and old, that ascend on both sides: the most there are.

    That is the longest ascending run among the old numbers. Of a content that is there several
    times, the first new one is the first old one, and so on.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    for old, each in enumerate(kept):
        numbers[each.content].append(old)
    pairs = []
    taken: dict[str, int] = defaultdict(int)
    for new, content in enumerate(contents):
        if taken[content] < len(numbers.get(content, ())):
            pairs.append((new, numbers[content][taken[content]]))
            taken[content] += 1
    return _longest_ascending(pairs)


def _longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ends: list[int] = []
    last_of: list[int] = []
    before: list[int | None] = []
    for number, (_, old) in enumerate(pairs):
        length = bisect_left(ends, old)
        if length == len(ends):
            ends.append(old)
            last_of.append(number)
        else:
            ends[length], last_of[length] = old, number
        before.append(last_of[length - 1] if length else None)
    found = []
    at = last_of[-1] if last_of else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _filled(positions: list[int | None]) -> list[int]:
    found: list[int] = []
    start = 0
    while start < len(positions):
        fixed = positions[start]
        if fixed is not None:
            found.append(fixed)
            start += 1
            continue
        end = next(
            (at for at in range(start, len(positions)) if positions[at] is not None), len(positions)
        )
        following = positions[end] if end < len(positions) else None
        found.extend(_between(found[-1] if found else None, following, end - start))
        start = end
    return found


def _between(before: int | None, after: int | None, count: int) -> list[int]:
    if after is None:
        first = 0 if before is None else before
        return [first + STEP * number for number in range(1, count + 1)]
    if before is None:
        return [after - STEP * number for number in range(count, 0, -1)]
    gap = (after - before) // (count + 1)
    if gap < 1:
        raise _NoPlace
    return [before + gap * number for number in range(1, count + 1)]


class ChunkPlan:
    """Tells the store which notes a document is to have; see `store.Plan`."""

    def __init__(self, document: Document, chunks: Sequence[Chunk], *, now: float) -> None:
        self._document = document
        self._chunks = chunks
        self._now = now
        self.written = 0
        """How many of them were not there before."""

    def __call__(self, kept: Sequence[Placed]) -> list[Draft]:
        """Return the notes, of which as many as possible are those that there are."""
        positions = place(kept, [chunk.content for chunk in self._chunks])
        pairs = zip(self._chunks, positions, strict=True)
        drafts = [self._draft(chunk, position) for chunk, position in pairs]
        known = set(kept)
        self.written = sum(Placed(each.position or 0, each.content) not in known for each in drafts)
        return drafts

    def _draft(self, chunk: Chunk, position: int) -> Draft:
        given = StoreInput(
            content=chunk.content,
            tags=self._document.tags,
            memory_type=NOTE_TYPE,
            metadata=_metadata(self._document, chunk),
            source=self._document.path,
            thread=self._document.thread,
            position=position,
        )
        return make_draft(given, now=self._now)


def _metadata(document: Document, chunk: Chunk) -> JsonObject:
    metadata: JsonObject = {"title": document.title}
    if chunk.headings:
        metadata["heading"] = list(chunk.headings)
    if chunk.page is not None:
        metadata["page"] = chunk.page
    return metadata


Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many files are done, of how many, and which one is next; at the end, an empty text."""

DEFAULT_PAGE: Final = 20

READER: Final = 1
"""Grows when files are read or cut otherwise: then all are read again."""

# Clocks of file systems are coarse: a file may change twice in one of their steps.
_FRESH_NS: Final = 2_000_000_000
_MAX_TITLE_CHARS: Final = 200


class Documents:
    """What files say, remembered in one namespace: every chunk of a file is a note.

    Memory's `search` and `recall` find them like any other; their type is "document", their source
    is the path. `roots` are the folders that may be read; None stands for all, empty for none.

    Every verb raises `BadInput` for a value that cannot be used, having changed nothing, and
    `StoreError` when the store does not answer.
    """

    def __init__(
        self,
        store: DocumentStore,
        meaning: NoteVectorizer,
        *,
        namespace: str,
        roots: Sequence[Path] | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._meaning = meaning
        self._namespace = clean_name(namespace, "namespace")
        self._roots = roots
        self._clock = clock

    @verb("adds", "POST /documents", is_tool=True, file="path")
    async def ingest(
        self,
        path: str,
        tags: Tags | None = None,
        *,
        pattern: str | None = None,
        recursive: bool = True,
        progress: Progress | None = None,
    ) -> Ingested:
        """Store the text of a file, or of all files in a folder: PDF, DOCX, HTML, Markdown, text.

        CSV and JSON are read too. Unchanged files are skipped; of changed ones, only the
        differences are written. A file that cannot be read is named with the reason, and the
        others are stored.

        In a folder, files with the extensions of documents are read, or those that match
        `pattern` ("*.rst", "guide/*.md"). Hidden files, links, and folders such as node_modules
        are skipped.

        Raises:
            NotFound: There is no such file or folder.
        """
        selection, wanted_tags = _selection(pattern, recursive=recursive), clean_tags(tags)
        found = await anyio.to_thread.run_sync(_find, path, self._roots, selection)
        count = _Count(failures=list(found.failures))
        tell = progress or _nobody
        async with ReaderProcess.running() as reading:
            for number, candidate in enumerate(found.candidates):
                tell(number, len(found.candidates), shown_path(candidate.path))
                await self._ingest_one(candidate, wanted_tags, reading, count)
        tell(len(found.candidates), len(found.candidates), "")
        return count.result(await self._missing(found))

    @verb("reads", "GET /documents", pages="documents")
    async def documents(self, limit: int = DEFAULT_PAGE, offset: int = 0) -> CompactDocuments:
        """List the stored documents by path; `total` counts all."""
        limit, offset = check_limit(limit), check_offset(offset)
        page = await self._store.page(self._namespace, limit=limit, offset=offset)
        return CompactDocuments(tuple(map(compact, page.documents)), page.total)

    async def passages(self, path: str) -> list[str]:
        """Return the hashes of the notes that a document was cut into, in its order.

        Raises:
            NotFound: No document of that path is stored.
        """
        found = await self._store.chunks(self._namespace, path)
        if not found:
            raise NotFound(f"No document {path!r} is remembered. documents() lists those that are.")
        return found

    @verb("removes", "DELETE /documents", wrap="forgotten", file="path")
    async def forget_document(self, path: str) -> int:
        """Delete the notes of a document, or of all in a folder; return how many were deleted.

        The files stay, and need not exist any more. Notes are deleted as `delete` does.

        Raises:
            NotFound: No document of that path is stored.
        """
        place = shown_path(await anyio.to_thread.run_sync(expected, path, self._roots))
        paths = await self._store.below(self._namespace, place)
        if not paths:
            raise NotFound(f"No document {path!r} is remembered. documents() lists those that are.")
        return await self._store.forget(self._namespace, paths, now=self._clock())

    async def _ingest_one(
        self, candidate: Candidate, tags: tuple[str, ...], reading: ReaderProcess, count: "_Count"
    ) -> None:
        try:
            name = check_name(candidate.path)
            before = await self._store.find(self._namespace, name)
            if before is not None and not await self._store.is_whole(self._namespace, before):
                before = None  # what was deleted of it comes back
            if before is not None and _is_current(before, candidate, tags):
                count.unchanged += 1
                return
            await self._read(candidate, before, tags, reading, count)
        except Unreadable as reason:
            count.failures.append(Failure(shown_path(candidate.path), str(reason)))

    async def _read(
        self,
        candidate: Candidate,
        before: Document | None,
        tags: tuple[str, ...],
        reading: ReaderProcess,
        count: "_Count",
    ) -> None:
        content, found = await anyio.to_thread.run_sync(read_file, candidate.path)
        seen = _Seen(
            digest=await anyio.to_thread.run_sync(_digest, content),
            size=found.st_size,
            modified_ns=_settled(found.st_mtime_ns, now=self._clock()),
        )
        if before is not None and seen.is_same(before) and _has_tags(before, tags):
            await self._store.touch(
                self._namespace, replace(before, size=seen.size, modified_ns=seen.modified_ns)
            )
            count.unchanged += 1
            return
        kind, read, chunks = await reading.read(content, candidate.path.name)
        all_tags = tuple(dict.fromkeys((*(before.tags if before else ()), *tags)))
        document = Document(
            path=shown_path(candidate.path),
            kind=kind,
            title=(read.title or candidate.path.name)[:_MAX_TITLE_CHARS],
            pages=read.pages,
            size=seen.size,
            modified_ns=seen.modified_ns,
            digest=seen.digest,
            reader=READER,
            tags=all_tags,
            chunks=len(chunks),
            ingested=self._clock(),
        )
        await self._keep(document, chunks, count, is_new=before is None)

    async def _keep(
        self, document: Document, chunks: list[Chunk], count: "_Count", *, is_new: bool
    ) -> None:
        now = self._clock()
        plan = ChunkPlan(document, chunks, now=now)
        keys = await self._store.put(self._namespace, document, plan, now=now)
        self._meaning.want(keys)
        count.added += is_new
        count.updated += not is_new
        count.notes += plan.written

    async def _missing(self, found: "_Found") -> list[str]:
        remembered = await self._store.below(self._namespace, shown_path(found.place))
        return await anyio.to_thread.run_sync(
            lambda: [path for path in remembered if not Path(path).exists()]
        )


class _Count:
    """What came of the files so far."""

    def __init__(self, failures: list[Failure]) -> None:
        self.failures = failures
        self.added = self.updated = self.unchanged = self.notes = 0

    def result(self, missing: Sequence[str]) -> Ingested:
        return Ingested(
            self.added,
            self.updated,
            self.unchanged,
            self.notes,
            tuple(self.failures),
            tuple(missing),
        )


class _Found(NamedTuple):
    place: Path
    candidates: list[Candidate]
    failures: list[Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A file as it was when it was read."""

    digest: str
    size: int
    modified_ns: int

    def is_same(self, before: Document) -> bool:
        return (self.digest, READER) == (before.digest, before.reader)


def _nobody(_done: int, _total: int, _what: str) -> None:
    pass


def _selection(pattern: str | None, *, recursive: bool) -> Selection:
    if pattern is not None and (not isinstance(pattern, str) or not pattern.strip()):
        raise BadInput('`pattern` is a text such as "*.rst" or "guide/*.md".')
    return Selection(pattern=pattern, is_recursive=bool(recursive))


def _find(path: str, roots: Sequence[Path] | None, selection: Selection) -> _Found:
    place = locate(path, roots)
    candidates: list[Candidate] = []
    try:
        for candidate in find_files(place, selection):
            candidates.append(candidate)
            if len(candidates) > MAX_FILES:
                raise BadInput(
                    f"More than {MAX_FILES:,} files in {path!r} are meant. Name a part of it, or "
                    "give a `pattern`."
                )
    except Unreadable as reason:
        return _Found(place, candidates, [Failure(shown_path(place), str(reason))])
    return _Found(place, candidates, [])


def _is_current(before: Document, candidate: Candidate, tags: tuple[str, ...]) -> bool:
    return (
        before.modified_ns == candidate.modified_ns
        and before.size == candidate.size
        and before.reader == READER
        and _has_tags(before, tags)
    )


def _has_tags(before: Document, tags: tuple[str, ...]) -> bool:
    return set(tags) <= set(before.tags)


def _settled(modified_ns: int, *, now: float) -> int:
    return 0 if modified_ns > now * 1e9 - _FRESH_NS else modified_ns


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
