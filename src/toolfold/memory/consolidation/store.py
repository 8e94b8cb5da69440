"""The ConsolidationStore protocol: what keeps consolidations, whichever database it is.

It works on the same notes as `Store`. A consolidation is applied and undone in one transaction:
whatever dies in between, all of it has happened or nothing has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from toolfold.jsontypes import JsonObject
from toolfold.memory.consolidation.models import ConsolidationCounts, PastConsolidation, Undone


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNote:
    """A note as it is now, with all that a consolidation weighs."""

    key: int
    hash: str
    version: int
    content: str
    type: str
    thread: str | None
    tags: tuple[str, ...]
    metadata: JsonObject
    created: float
    updated: float
    quality: float
    influence: float
    """What its quality counts when notes are put in order; the quality itself if never faded."""

    vector: bytes | None
    links: frozenset[str]
    """The hashes of the notes that it is linked to."""

    gets: int = 0
    last_used: float | None = None


class Merge(NamedTuple):
    """Notes that say the same: one is kept, and supersedes the others."""

    survivor: int
    superseded: tuple[int, ...]
    tags: tuple[str, ...]
    """Of all of them; the survivor has these from now on."""


class SeenNote(NamedTuple):
    """What a note was when the plan was made."""

    hash: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPlan:
    """What is to be done to notes, by their keys, and what each of them was then."""

    merges: tuple[Merge, ...] = ()
    archive: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    """Pairs that are associated, to be linked both ways."""

    influence: Mapping[int, float] = field(default_factory=dict)
    findings: tuple[bytes, ...] = ()
    """Names of patterns and clusters that were found."""

    seen: Mapping[int, SeenNote] = field(default_factory=dict)
    """Of every note above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """When and how a consolidation is made."""

    at: float
    strategy: str
    days_back: float | None
    counts: ConsolidationCounts
    """Of what is not in the plan: notes looked at, patterns, clusters."""


class Applied(NamedTuple):
    """What became of a plan."""

    id: str
    counts: ConsolidationCounts
    skipped: int


class ConsolidationLease(NamedTuple):
    """The right to consolidate a namespace, until it is given back or `until` has passed."""

    namespace: str
    holder: str
    until: float


class ConsolidationStore(Protocol):
    """Reads notes for consolidations, applies and undoes them, and remembers them.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then.
    """

    async def notes_after(
        self, namespace: str, key: int, *, limit: int, since: float | None = None
    ) -> list[StoredNote]:
        """Return notes with a higher key that are not deleted, in the order of their keys.

        With `since`, only those created then or later.
        """

    async def known_findings(self, namespace: str, names: Sequence[bytes]) -> set[bytes]:
        """Return which of these were found by a consolidation that is not undone."""

    async def apply(self, namespace: str, plan: ConsolidationPlan, occasion: Occasion) -> Applied:
        """Do what is planned, wholly or not at all, and remember it.

        A note that is not what it was when the plan was made is left alone. Superseded notes are
        deleted as `Store.delete` does. So are archived ones, but `Store.get` still returns them.
        """

    async def undo(self, namespace: str, id: str | None, *, now: float) -> Undone:
        """Reverse a consolidation; without an id the last that did something and is not undone.

        Notes and all that belongs to them are then exactly as before. Those that somebody has
        changed since stay as they are, and are named.

        Raises:
            NotFound: There is none.
            BadInput: It is undone already, or a later one has changed the same notes.
        """

    async def past(self, namespace: str, *, limit: int) -> list[PastConsolidation]:
        """Return the consolidations of a namespace, the last first."""

    async def namespaces(self) -> list[str]:
        """Return the names of all namespaces, in order."""

    async def take_turn(self, turn: ConsolidationLease, *, now: float, every_s: float) -> float:
        """Return 0 and take the turn if a consolidation is due; else how many seconds to wait.

        It is due if the last one was that long ago and nobody has a turn. What a person undid is
        not done again behind their back: after an undo none is due until somebody consolidates.
        """

    async def end_turn(self, turn: ConsolidationLease) -> None:
        """Give a turn back."""
