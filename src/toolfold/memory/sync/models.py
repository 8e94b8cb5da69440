"""What syncs notes, and what comes of it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from toolfold.errors import count
from toolfold.memory.models import Event
from toolfold.memory.sync.journal import KeptNote, NoteRewrite


class KeptNotes(NamedTuple):
    """What a store holds of a namespace."""

    notes: Sequence[KeptNote]
    events: Mapping[str, Event]


class Replica(Protocol):
    """Reads and writes notes with all their versions.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then.
    """

    async def read(self, namespace: str) -> KeptNotes:
        """Return all notes but those of documents, and all events, as they are at one moment."""

    async def erased(self, numbers: Sequence[int]) -> set[int]:
        """Return which of these notes were purged. One that was never there is not among them."""

    async def rewrite(
        self,
        namespace: str,
        rewrites: Sequence[NoteRewrite],
        events: Sequence[Event],
        *,
        now: float,
    ) -> list[int] | None:
        """Do what is planned and keep events, all or nothing; return notes that may need a vector.

        None if a note is not as it was seen: nothing has changed then.
        """


class Synced(NamedTuple):
    """What came of a sync."""

    remote: str
    received: int
    """Notes that are new here, or have changed."""

    purged: int
    """Notes that another machine erased for good."""

    events: int
    sent: int
    """Notes of which the remote has learned something."""

    conflicts: tuple[str, ...]
    """The notes that were changed on both sides, the first of them: `history` shows both."""

    unreadable: tuple[str, ...]
    """Files that were left out, and why."""

    def __repr__(self) -> str:
        lines = [
            f"{count(self.received, 'note')} received, {self.sent} sent, {self.purged} purged; "
            f"{count(self.events, 'event')} received."
        ]
        if self.conflicts:
            lines.append(
                "Changed on both sides; the later version counts, `history` shows the other: "
                f"{', '.join(self.conflicts)}"
            )
        return "\n".join([*lines, *(f"Not read: {each}" for each in self.unreadable)])


class Machine(NamedTuple):
    """Where a sync happens."""

    directory: Path
    """What is remembered of remotes is kept there."""

    environ: Callable[[], Mapping[str, str]]
    """What git is given, as far as it needs it."""
