"""What a consolidation holds of each note while it thinks. Pure."""

import json
from dataclasses import dataclass
from typing import Final

from toolfold.memory.consolidation.store import SeenNote, StoredNote
from toolfold.memory.consolidation.subjects import subjects
from toolfold.memory.consolidation.text_comparison import depends_on_its_day, sameness_key
from toolfold.memory.ranking.rank import ESTIMATES

PINNED_TAGS: Final = frozenset({"important", "pinned"})

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiedNote:
    """One note, without its text: there may be a great many."""

    key: int
    seen: SeenNote
    tags: tuple[str, ...]
    thread: str | None
    created: float
    quality: float
    is_rated: bool
    """Whether its quality is what somebody said, and not what was estimated."""

    influence: float
    gets: int
    last_used: float
    """When somebody last used, changed or stored it. Not when it was created: what comes in from
    elsewhere with a date of long ago has not had a chance to be used."""

    links: frozenset[str]
    vector: bytes | None
    words: tuple[str, ...]
    """What it is about; see `subjects`."""

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


def study(note: StoredNote) -> StudiedNote:
    """Read a note."""
    return StudiedNote(
        key=note.key,
        seen=SeenNote(note.hash, note.version),
        tags=note.tags,
        thread=note.thread,
        created=note.created,
        quality=note.quality,
        influence=note.influence,
        gets=note.gets,
        is_rated=note.quality not in ESTIMATES,
        last_used=max(note.updated, note.last_used or note.updated),
        links=note.links,
        vector=note.vector,
        words=subjects(note.content),
        sameness=_sameness(note),
    )


def _sameness(note: StoredNote) -> bytes:
    """Return what equal notes share: their words, and all that gives words another meaning."""
    day = note.created // _DAY_S if depends_on_its_day(note.content) else None
    about = json.dumps([note.type, day, note.metadata], sort_keys=True)
    return sameness_key(note.content) + about.encode()
