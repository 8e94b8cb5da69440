"""What was found, in a few words and in forms made to be read. Pure."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final, NamedTuple, TypeVar

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
from toolfold.memory.consolidation.study import StudiedNote, subjects
from toolfold.memory.models import preview, shown
from toolfold.memory.ranking.rank import is_question

_WORDS_SHOWN: Final = 6
_MAX_TEXTS: Final = 50
_MAX_CHARS: Final = 4_000
_MAX_SENTENCE_CHARS: Final = 300
_FEWEST_WORDS: Final = 2
_SENTENCES: Final = 2
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_PENALTY_OF_QUESTIONS: Final = 0.5


class Summary(NamedTuple):
    """The most central sentences, and the words that tell these texts from others."""

    text: str
    words: tuple[str, ...]


def summarize(texts: Sequence[str], occurrences: Mapping[str, int], count: int) -> Summary:
    """Return what texts have in common; `occurrences` says how many of `count` notes have a word.

    The first sentence is the one that has most of the words they share, for its length. The second
    is the one that adds most to it, if it adds anything that several texts have.
    """
    texts = [text[:_MAX_CHARS] for text in texts[:_MAX_TEXTS]]
    shared = Counter(word for text in texts for word in subjects(text))
    weights = {
        word: times * math.log((count + 1) / (occurrences.get(word, times) + 0.5))
        for word, times in shared.items()
        if times > 1
    }
    sentences = dict.fromkeys(
        each.strip()[:_MAX_SENTENCE_CHARS]
        for text in texts
        for each in _SENTENCE_END.split(text)
        if len(subjects(each)) >= _FEWEST_WORDS
    )
    chosen = _chosen(list(sentences), weights) or [preview(text) for text in texts[:1]]
    telling = sorted(weights, key=lambda word: (-weights[word], word))
    return Summary(" … ".join(chosen), tuple(telling[:_WORDS_SHOWN]))


def _chosen(sentences: Sequence[str], weights: Mapping[str, float]) -> list[str]:
    chosen: list[str] = []
    left = dict(weights)
    for _ in range(_SENTENCES):
        scored = [(-_worth(sentence, left), place) for place, sentence in enumerate(sentences)]
        worth, place = min(scored, default=(0.0, 0))
        if worth >= 0:
            break
        chosen.append(sentences[place])
        for word in subjects(sentences[place]):
            left.pop(word, None)
    return chosen


def _worth(sentence: str, weights: Mapping[str, float]) -> float:
    words = subjects(sentence)
    worth = sum(weights.get(word, 0.0) for word in words) / math.sqrt(len(words) or 1)
    return worth * (_PENALTY_OF_QUESTIONS if is_question(sentence) else 1.0)


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
