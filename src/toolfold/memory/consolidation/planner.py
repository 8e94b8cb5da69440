"""Think over all notes at once: what fades, what is said twice, what is to be done. Pure."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from toolfold.memory.consolidation.associations import (
    FoundPattern,
    NearbyPairs,
    Pair,
    Rows,
    find_associations,
    find_nearby,
    find_patterns,
    read_vectors,
)
from toolfold.memory.consolidation.models import Comparison, Strategy
from toolfold.memory.consolidation.store import ConsolidationPlan, Merge
from toolfold.memory.consolidation.study import StudiedNote
from toolfold.memory.inputs import MAX_TAGS

MAX_CLUSTERS: Final = 100


def find_clusters(
    notes: Sequence[StudiedNote], nearby: NearbyPairs, comparing: Comparison
) -> list[list[int]]:
    """Return groups of rows, the largest first, each with the row in its middle first.

    Whoever has most others near it takes those of them that no larger group has. All are near its
    middle, so a group never becomes a chain of notes whose ends have nothing in common. A group is
    of several occasions: what is said within one conversation belongs together anyway.
    """
    near = nearby.nearness >= comparing.least_nearness
    rows, columns = nearby.rows[near], nearby.columns[near]
    bounds = np.searchsorted(rows, np.arange(len(notes) + 1))
    degrees = np.diff(bounds)
    taken = np.zeros(len(notes), np.bool_)
    clusters = []
    for middle in np.lexsort((np.arange(len(notes)), -degrees)).tolist():
        if taken[middle] or degrees[middle] + 1 < comparing.fewest_in_cluster:
            continue
        members = _members(middle, columns[bounds[middle] : bounds[middle + 1]], taken)
        occasions = {notes[member].occasion for member in members}
        if len(occasions) >= comparing.fewest_in_cluster:
            taken[members] = True
            clusters.append(members)
    return sorted(clusters, key=lambda each: (-len(each), each[0]))[:MAX_CLUSTERS]


def _members(
    middle: int, others: Rows, taken: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> list[int]:
    return [middle, *others[~taken[others]].tolist()]


def find_merges(notes: Sequence[StudiedNote]) -> list[Merge]:
    """Return which notes supersede which; the best of each kind stays, of equals the newest.

    Parts of a conversation or document are left alone, whatever they say: each stands beside other
    words. So are pinned notes.
    """
    groups: dict[bytes, list[StudiedNote]] = {}
    for note in notes:
        if note.thread is None and not note.is_pinned:
            groups.setdefault(note.sameness, []).append(note)
    merges = [_merge(group) for group in groups.values() if len(group) > 1]
    return [merge for merge in merges if len(merge.tags) <= MAX_TAGS]


def _merge(group: Sequence[StudiedNote]) -> Merge:
    best, *others = sorted(group, key=_worth, reverse=True)
    others.sort(key=lambda note: note.key)
    tags = dict.fromkeys(tag for note in (best, *others) for tag in note.tags)
    return Merge(best.key, tuple(note.key for note in others), tuple(tags))


def _worth(note: StudiedNote) -> tuple[float, int, float, str]:
    return note.quality, note.gets, note.created, note.seen.hash


# How the influence of a note fades with the time that it is not used. Pure.
#
# The influence is the quality, times a share that falls from 1 towards one half:
#
# - For 90 days after it was last used, changed or stored a note keeps all of it. Days are counted
# up
#   to the last time that anything in the namespace was used: a memory that nobody opened for a year
#   has not faded, because nobody passed its notes over.
# - After that, what is above one half is halved in 180 days; later the better a note is, and the
# more
#   often somebody got it. Using it brings everything back.
#
# The share goes in steps of a twentieth, so that not every note changes with every consolidation.
# It is made from the quality, never from an earlier influence, so doing it twice is doing it
# once.

_DAY_S: Final = 86_400.0
_GRACE_DAYS: Final = 90.0
_HALF_LIFE_DAYS: Final = 180.0
_LEAST_SHARE: Final = 0.5
_STEPS: Final = 20
_GETS_PER_HALF_LIFE: Final = 4

ARCHIVE_AFTER_DAYS: Final = 365.0
ARCHIVE_BELOW_QUALITY: Final = 0.25


def influence(note: StudiedNote, *, latest: float) -> float:
    """Return what the quality of a note should count; `latest` is the last use of any note."""
    faded_days = max(0.0, idle_days(note, latest=latest) - _GRACE_DAYS)
    half_life = _HALF_LIFE_DAYS * (0.5 + note.quality) * (1 + note.gets / _GETS_PER_HALF_LIFE)
    share: float = _LEAST_SHARE + (1 - _LEAST_SHARE) * 0.5 ** (faded_days / half_life)
    return note.quality * (round(share * _STEPS) / _STEPS)


def is_to_archive(note: StudiedNote, *, latest: float) -> bool:
    """Whether a note is poor and was not used for so long that search does without it.

    Poor is what somebody rated so. An estimate will not do: a note that only asks something is
    estimated at nothing, and what it asks may be all that is left of a conversation.
    Parts of a conversation or document are not: what stands beside them leans on them.
    """
    return (
        note.thread is None
        and note.is_rated
        and note.quality < ARCHIVE_BELOW_QUALITY
        and idle_days(note, latest=latest) > ARCHIVE_AFTER_DAYS
    )


def idle_days(note: StudiedNote, *, latest: float) -> float:
    """Return for how many days others were used and a note was not."""
    return max(0.0, latest - note.last_used) / _DAY_S


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
