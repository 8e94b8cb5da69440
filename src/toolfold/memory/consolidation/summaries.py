"""Say in a few words what several texts are about, in their own words. Pure."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from toolfold.memory.consolidation.subjects import subjects
from toolfold.memory.models import preview
from toolfold.memory.ranking.words import is_question

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
