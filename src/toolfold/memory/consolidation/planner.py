"""Think over all notes at once: what they say together, and what is to be done. Pure."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from toolfold.memory.consolidation.associations import Pair, find_associations
from toolfold.memory.consolidation.clusters import find_clusters
from toolfold.memory.consolidation.decay import influence, is_to_archive
from toolfold.memory.consolidation.duplicates import find_merges
from toolfold.memory.consolidation.patterns import FoundPattern, find_patterns
from toolfold.memory.consolidation.similarity import find_nearby, read_vectors
from toolfold.memory.consolidation.store import ConsolidationPlan, Merge
from toolfold.memory.consolidation.strategies import Comparison, Strategy
from toolfold.memory.consolidation.study import StudiedNote

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""

MAX_COMPARED: Final = 100_000
"""Of more notes, the newest are compared with each other."""


class NoteGroup(NamedTuple):
    """Notes on one subject, the most central first."""

    name: bytes
    notes: tuple[StudiedNote, ...]


class RecurringPattern(NamedTuple):
    """A pattern with the notes behind it, newest first."""

    name: bytes
    pattern: FoundPattern
    notes: tuple[StudiedNote, ...]


class AssociatedNotes(NamedTuple):
    """Two notes that belong together and are not linked yet."""

    note: StudiedNote
    other: StudiedNote
    pair: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationAnalysis:
    """What was found, and what is to be done."""

    looked_at: int
    merges: tuple[Merge, ...]
    archive: tuple[StudiedNote, ...]
    patterns: tuple[RecurringPattern, ...]
    clusters: tuple[NoteGroup, ...]
    associations: tuple[AssociatedNotes, ...]
    influence: Mapping[int, float]
    notes: Mapping[int, StudiedNote]
    """All that were looked at, by key."""

    occurrences: Mapping[str, int]
    """How many of the notes that stay have a word."""

    @property
    def findings(self) -> tuple[bytes, ...]:
        """The names of all patterns and clusters."""
        return (
            *(each.name for each in self.patterns),
            *(each.name for each in self.clusters),
        )


def think(
    notes: Sequence[StudiedNote], strategy: Strategy, *, now: float, progress: Progress
) -> ConsolidationAnalysis:
    """Return what a consolidation finds and should do; the same for the same notes and now.

    Everything else is found among those notes that stay in sight, so that a consolidation of what
    this one leaves behind finds nothing that is new.
    """
    merges = find_merges(notes)
    in_sight = _merged(notes, merges, now)
    latest = max((note.last_used for note in in_sight), default=now)
    archive = [note for note in in_sight if strategy.ages and _is_to_archive(note, latest)]
    staying = [note for note in in_sight if not (strategy.ages and _is_to_archive(note, latest))]
    patterns = _patterns(staying, strategy.fewest_in_pattern)
    associations, clusters = _compare(staying, strategy.comparing, progress)
    return ConsolidationAnalysis(
        looked_at=len(notes),
        merges=tuple(merges),
        archive=tuple(archive),
        patterns=tuple(patterns),
        clusters=tuple(clusters),
        associations=tuple(associations),
        influence=_faded(staying, latest) if strategy.ages else {},
        notes={note.key: note for note in notes},
        occurrences=Counter(word for note in staying for word in note.words) if clusters else {},
    )


def make_plan(thought: ConsolidationAnalysis) -> ConsolidationPlan:
    """Return what the store is to do."""
    merged = {key for merge in thought.merges for key in (merge.survivor, *merge.superseded)}
    linked = {each.key for pair in thought.associations for each in (pair.note, pair.other)}
    archived = {note.key for note in thought.archive}
    touched = merged | linked | archived | thought.influence.keys()
    return ConsolidationPlan(
        merges=thought.merges,
        archive=tuple(note.key for note in thought.archive),
        links=tuple((each.note.key, each.other.key) for each in thought.associations),
        influence=thought.influence,
        findings=thought.findings,
        seen={key: thought.notes[key].seen for key in sorted(touched)},
    )


def _merged(notes: Sequence[StudiedNote], merges: Sequence[Merge], now: float) -> list[StudiedNote]:
    """Return the notes as they are once those that say the same have become one."""
    gone = {key for merge in merges for key in merge.superseded}
    tags = {merge.survivor: merge.tags for merge in merges}
    return [
        replace(note, tags=tags[note.key], last_used=now)  # other tags are a change
        if tags.get(note.key, note.tags) != note.tags
        else note
        for note in notes
        if note.key not in gone
    ]


def _is_to_archive(note: StudiedNote, latest: float) -> bool:
    return not note.is_pinned and is_to_archive(note, latest=latest)


def _faded(notes: Sequence[StudiedNote], latest: float) -> dict[int, float]:
    wanted = {note.key: influence(note, latest=latest) for note in notes if not note.is_pinned}
    return {note.key: wanted[note.key] for note in notes if _differs(note, wanted)}


def _differs(note: StudiedNote, wanted: Mapping[int, float]) -> bool:
    return note.key in wanted and wanted[note.key] != note.influence


def _patterns(notes: Sequence[StudiedNote], fewest: int | None) -> list[RecurringPattern]:
    if fewest is None:
        return []
    found = []
    for pattern in find_patterns(notes, fewest=fewest):
        behind = sorted(
            (notes[row] for row in pattern.rows), key=lambda note: (-note.created, note.key)
        )
        found.append(RecurringPattern(_name("pattern", behind), pattern, tuple(behind)))
    return found


def _compare(
    notes: Sequence[StudiedNote], comparing: Comparison | None, progress: Progress
) -> tuple[list[AssociatedNotes], list[NoteGroup]]:
    if comparing is None:
        return [], []
    compared = sorted(notes, key=lambda note: (-note.created, note.key))[:MAX_COMPARED]
    compared.sort(key=lambda note: note.key)
    vectors = read_vectors([note.vector for note in compared])
    nearby = find_nearby(
        vectors,
        least=comparing.least_nearness,
        tick=lambda done, total: progress(done, total, "comparing notes"),
    )
    pairs = find_associations(compared, vectors, nearby, comparing)
    clusters = find_clusters(compared, nearby, comparing)
    grouped = [tuple(compared[row] for row in rows) for rows in clusters]
    return _unlinked(compared, pairs), [NoteGroup(_name("cluster", each), each) for each in grouped]


def _unlinked(notes: Sequence[StudiedNote], pairs: Iterable[Pair]) -> list[AssociatedNotes]:
    """Return the pairs that are not linked yet, and in which no note is pinned."""
    both = (AssociatedNotes(notes[pair.row], notes[pair.other], pair) for pair in pairs)
    return [
        each
        for each in both
        if not (each.note.is_pinned or each.other.is_pinned)
        and each.other.seen.hash not in each.note.links
        and each.note.seen.hash not in each.other.links
    ]


def _name(kind: str, notes: Sequence[StudiedNote]) -> bytes:
    """Return what a finding is known by: those behind it, whatever their order."""
    hashes = sorted(note.seen.hash for note in notes)
    return hashlib.sha256("\0".join([kind, *hashes]).encode()).digest()[:16]
