"""What was found, in forms made to be read. Pure."""

from collections.abc import Callable, Sequence, Set
from typing import Final, TypeVar

from toolfold.memory.consolidation.models import (
    Association,
    Cluster,
    Consolidated,
    ConsolidationCounts,
    Duplicate,
    Pattern,
)
from toolfold.memory.consolidation.planner import (
    AssociatedNotes,
    ConsolidationAnalysis,
    NoteGroup,
    RecurringPattern,
)
from toolfold.memory.consolidation.store import Applied, Merge
from toolfold.memory.consolidation.study import StudiedNote
from toolfold.memory.consolidation.summaries import Summary
from toolfold.memory.hashes import shown

_T = TypeVar("_T")
_U = TypeVar("_U")

MAX_LISTED: Final = 50

_NAMED_WORDS: Final = 3


def count(thought: ConsolidationAnalysis, known: Set[bytes]) -> ConsolidationCounts:
    """Return how much was found that was not known, and is to be done."""
    return ConsolidationCounts(
        looked_at=thought.looked_at,
        patterns=len({each.name for each in thought.patterns} - known),
        clusters=len({each.name for each in thought.clusters} - known),
        associations=len(thought.associations),
        superseded=sum(len(merge.superseded) for merge in thought.merges),
        archived=len(thought.archive),
        faded=len(thought.influence),
    )


def report(
    thought: ConsolidationAnalysis,
    known: Set[bytes],
    summaries: Sequence[Summary],
    *,
    strategy: str,
    applied: Applied | None,
) -> Consolidated:
    """Return what a consolidation found and did; `summaries` are of the clusters, in order."""
    clusters = zip(thought.clusters, summaries, strict=False)
    return Consolidated(
        id=None if applied is None else applied.id,
        strategy=strategy,
        counts=count(thought, known) if applied is None else applied.counts,
        patterns=_listed(lambda each: _pattern(each, known), thought.patterns),
        clusters=tuple(_cluster(each, known, summary) for each, summary in clusters),
        associations=_listed(_association, thought.associations),
        duplicates=_listed(lambda merge: _duplicate(thought, merge), thought.merges),
        archived=_listed(lambda note: shown(note.seen.hash), thought.archive),
        skipped=0 if applied is None else applied.skipped,
    )


def _listed(make: Callable[[_T], _U], found: Sequence[_T]) -> tuple[_U, ...]:
    return tuple(make(each) for each in found[:MAX_LISTED])


def _pattern(found: RecurringPattern, known: Set[bytes]) -> Pattern:
    first, second, *others = found.pattern.items
    text = f"{len(found.notes)} of {found.pattern.of} notes on {first} speak of {second} too"
    text += f", often with {_and(others)}" * bool(others)
    return Pattern(text, found.pattern.confidence, _hashes(found.notes), found.name not in known)


def _cluster(found: NoteGroup, known: Set[bytes], summary: Summary) -> Cluster:
    return Cluster(summary.text, summary.words, _hashes(found.notes), found.name not in known)


def _association(found: AssociatedNotes) -> Association:
    shared = found.pair.shared[:_NAMED_WORDS]
    both = f", both speak of {_and(shared)}" if shared else ""
    return Association(
        hash=shown(found.note.seen.hash),
        other=shown(found.other.seen.hash),
        strength=min(found.pair.strength, 1.0),
        why=f"nearness {found.pair.nearness:.2f}{both}",
    )


def _duplicate(thought: ConsolidationAnalysis, merge: Merge) -> Duplicate:
    superseded = (thought.notes[key] for key in merge.superseded)
    survivor = thought.notes[merge.survivor]
    return Duplicate(shown(survivor.seen.hash), _hashes(tuple(superseded)))


def _hashes(notes: Sequence[StudiedNote]) -> tuple[str, ...]:
    return tuple(shown(note.seen.hash) for note in notes[:MAX_LISTED])


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
