"""Count what stands before and after a note in its conversation or document.

An answer often names nothing that its question named: "Where do you work now?", "At the harbour."
So a note's score takes in those of its neighbours. A short note needs them, a long one says by
itself what it is about, so how much they lend it depends on its length. That needs nothing but the
scores and lengths of the notes themselves: no text is indexed or embedded twice, and a note that is
written, changed or deleted leaves nothing to repair.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.integer]
Scores: TypeAlias = NDArray[np.float32]

# What the next note on each side counts, and the one after it: half as much with each step.
WEIGHTS = (1.0, 0.5)

# How much of what neighbours are worth comes to a short note. Words are lent far more than meaning:
# nearly everything is a little near to a query, so that lent meaning blurs what a note says itself.
WORDS_LENT = 0.7
MEANING_LENT = 0.08

# A note of so many words gets half of that, one of twice as many next to nothing.
_LONG_WORDS = 105
# The sum is divided by its weights to this power: with 0, a note among others would always come
# before one that stands alone; with 1, always after.
_SHARED = 0.6
# Long texts have something of everything: what a long note loses each time that it is e times as
# long. It does not begin before a note is long: of short ones the longer say more.
_LENGTH_LOSS = 0.1
_LEAST_KEPT = 0.3


def link(threads: Numbers, positions: Numbers) -> Numbers:
    """Return for each note which ones are beside it: before, after, two before, two after.

    One row for each note, of numbers of rows, -1 for none. `threads` numbers the conversation or
    document of each note, negative for none; neighbours are by order of `positions`, with gaps or
    not. Of notes at one position the first given comes first.
    """
    order = np.lexsort((positions, threads))
    beside = np.full((len(order), 2 * len(WEIGHTS)), -1, np.int32)
    for step in range(1, len(WEIGHTS) + 1):
        before, after = order[:-step], order[step:]
        is_same = (threads[before] == threads[after]) & (threads[before] >= 0)
        before, after = before[is_same], after[is_same]
        beside[after, 2 * step - 2] = before
        beside[before, 2 * step - 1] = after
    return beside


def influences(counts: Numbers, beside: Numbers, lent: float) -> tuple[Scores, Scores]:
    """Return what each note's own score counts, and what the scores beside it do.

    `counts` is how many words each note has, `lent` how much neighbours lend to a short one.
    """
    lengths = np.maximum(counts, 1).astype(np.float32)
    share = np.float32(lent) / (1 + (lengths / _LONG_WORDS) ** 3)
    weights = 1 + share * ((beside >= 0) @ np.array(_column_weights(), np.float32))
    own = (_kept(lengths, beside) / weights**_SHARED).astype(np.float32)
    return own, (own * share).astype(np.float32)


def with_neighbours(scores: Scores, beside: Numbers, own: Scores, others: Scores) -> Scores:
    """Return what each note is worth with its neighbours, by what `influences` returned.

    `scores` is what each is worth by itself, 0 if nothing.
    """
    padded = np.append(scores, np.float32(0))  # so that -1, none, is worth nothing
    added = np.zeros(len(beside), np.float32)
    for weight, numbers in zip(_column_weights(), beside.T, strict=True):
        added += np.float32(weight) * padded[numbers]
    added *= others
    added += own * scores
    return added


def _kept(lengths: Scores, beside: Numbers) -> Scores:
    """Return what a note keeps of its worth, by its length and whether others stand beside it.

    A word or two of a conversation, as "Thanks, Ben!", say little, whatever is said around them.
    """
    kept = np.maximum(1 - _LENGTH_LOSS * np.log1p(lengths / _LONG_WORDS), _LEAST_KEPT)
    is_part = (beside >= 0).any(axis=1)
    return np.where(is_part, kept * lengths / (lengths + 1), kept).astype(np.float32)


def _column_weights() -> list[float]:
    return [weight for weight in WEIGHTS for _ in ("before", "after")]
