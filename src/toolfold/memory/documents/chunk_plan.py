"""From the chunks of a document to the notes that it is to have."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from toolfold.jsontypes import JsonObject
from toolfold.memory.documents.chunks import Chunk
from toolfold.memory.documents.models import NOTE_TYPE, Document, Placed
from toolfold.memory.drafts import StoreInput, make_draft
from toolfold.memory.models import Draft

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
