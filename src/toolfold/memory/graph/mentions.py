"""Find the notes that mention an entity."""

import re
from typing import Final

from toolfold.memory.graph.text_match import writable
from toolfold.memory.hashes import shown
from toolfold.memory.models import CompactMemory, CompactSearchResult, preview
from toolfold.memory.ranking.rank import rank
from toolfold.memory.store import Query, Store

MAX_NAME_WORDS: Final = 8
MAX_TEXT_WORDS: Final = 10_000

# `Ada_Lovelace` is how many name their entities, and `Ada Lovelace` how notes write it.
_WORD: Final = re.compile(r"[^\W_]+")


def spoken(name: str) -> str | None:
    """Return how a name stands in a text: its words in lower case, with one space between.

    None if it has no words, or so many that nobody would repeat it.
    """
    words = words_of(name)
    return " ".join(words) if 0 < len(words) <= MAX_NAME_WORDS else None


def phrases(text: str) -> list[str]:
    """Return all that a name that is mentioned in a text may be spoken like, in order, each once.

    Of a long text only the beginning counts.
    """
    words = words_of(text)[:MAX_TEXT_WORDS]
    found = {
        " ".join(words[start : start + length]): None
        for start in range(len(words))
        for length in range(1, min(MAX_NAME_WORDS, len(words) - start) + 1)
    }
    return list(found)


def is_mentioned(phrase: str, text: str) -> bool:
    """Tell whether a text mentions what is spoken so."""
    return f" {phrase} " in f" {' '.join(words_of(text))} "


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(writable(text).lower())


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
