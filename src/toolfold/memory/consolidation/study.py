"""What a consolidation holds of each note while it thinks. Pure."""

import json
from dataclasses import dataclass
from typing import Final

from toolfold.memory.consolidation.sameness import depends_on_its_day, sameness_key
from toolfold.memory.consolidation.store import Kept, Seen
from toolfold.memory.ranking.words import telling_words

PINNED_TAGS: Final = frozenset({"important", "pinned"})

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Studied:
    """One note, without its text: there may be a great many."""

    key: int
    seen: Seen
    tags: tuple[str, ...]
    thread: str | None
    created: float
    quality: float
    influence: float
    gets: int
    last_used: float
    links: frozenset[str]
    vector: bytes | None
    words: tuple[str, ...]
    """Its telling words, each once."""

    sameness: bytes
    """Equal for two notes that say the same."""

    @property
    def is_pinned(self) -> bool:
        """Whether nothing may be done to it."""
        return any(tag.casefold() in PINNED_TAGS for tag in self.tags)

    @property
    def occasion(self) -> object:
        """What it was said in: parts of one conversation or document count as one."""
        return self.key if self.thread is None else self.thread


def study(note: Kept) -> Studied:
    """Read a note."""
    return Studied(
        key=note.key,
        seen=Seen(note.hash, note.version),
        tags=note.tags,
        thread=note.thread,
        created=note.created,
        quality=note.quality,
        influence=note.influence,
        gets=note.gets,
        last_used=max(note.created, note.last_used or note.created),
        links=note.links,
        vector=note.vector,
        words=tuple(dict.fromkeys(map(folded, telling_words(note.content)))),
        sameness=_sameness(note),
    )


def folded(word: str) -> str:
    """Return a word without the ending of a plural: `deploys` and `deploy` are one."""
    is_plural = len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural and word.isalpha() else word


def _sameness(note: Kept) -> bytes:
    """Return what equal notes share: their words, and all that gives words another meaning."""
    day = note.created // _DAY_S if depends_on_its_day(note.content) else None
    about = json.dumps([note.type, day, note.metadata], sort_keys=True)
    return sameness_key(note.content) + about.encode()
