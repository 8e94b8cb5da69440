"""Find the notes that mention an entity."""

from typing import Final

from toolfold.memory.graph.mention_rule import is_mentioned, words_of
from toolfold.memory.hashes import shown
from toolfold.memory.models import CompactMemory, CompactSearchResult, preview
from toolfold.memory.ranking.rank import rank
from toolfold.memory.store import Query, Store

_DEPTH: Final = 1_000


async def find_mentions(
    notes: Store, namespace: str, name: str, *, limit: int, now: float
) -> CompactSearchResult:
    """Return the notes that mention a name, best first; `total` counts all that were found.

    Notes are found by the words of the name, and read: only those count that have all of them in a
    row. A name without words is mentioned nowhere.

    Raises:
        StoreError: The store does not answer.
    """
    words = words_of(name)
    if not words:
        return CompactSearchResult((), 0, name)
    asked = Query(text=" ".join(words), vector=None)
    matches = await notes.search(namespace, asked, depth=_DEPTH)
    hits = rank(matches.lists, created=matches.created, quality=matches.quality, now=now)
    loaded = await notes.load(namespace, [hit.key for hit in hits])
    found = [
        (loaded[hit.key], hit.score)
        for hit in hits
        if hit.key in loaded and is_mentioned(" ".join(words), loaded[hit.key].content)
    ]
    compact = tuple(
        CompactMemory(shown(note.hash), preview(note.content), note.tags, note.created, score)
        for note, score in found[:limit]
    )
    return CompactSearchResult(compact, len(found), name)
