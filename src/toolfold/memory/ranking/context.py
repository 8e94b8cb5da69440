"""Count what stands before and after a note in its conversation or document.

An answer often names nothing that its question named: "Where do you work now?", "At the harbour."
So a note's score takes in those of its neighbours. That needs nothing but the scores and vectors of
the notes themselves: no text is indexed or embedded twice, and a note that is written, changed or
deleted leaves nothing to repair.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.embedding import Vectors

Numbers: TypeAlias = NDArray[np.integer]
Scores: TypeAlias = NDArray[np.float32]

# What the next note on each side counts, and the one after it: half as much with each step.
WEIGHTS = (0.5, 0.25)

# How many notes that have a word of the query take part. Those beside many of them rank high, so
# the hits must be many more than the notes that are returned in the end.
WORD_HITS = 1_000

_BLOCK_ROWS = 1_024


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


def weight_roots(beside: Numbers) -> Scores:
    """Return the root of the weights that the words of each note and its neighbours have."""
    weights = 1 + (beside >= 0) @ np.array(_column_weights(), np.float32)
    roots: Scores = np.sqrt(weights)
    return roots


def words_nearby(scores: Scores, beside: Numbers, roots: Scores) -> Scores:
    """Return what each note is worth by its words and those of its neighbours.

    `scores` is what each is worth by itself, 0 without a word of the query. The weighted sum is
    divided by `weight_roots`: undivided, a note among others would always come before one that
    stands alone; divided by the weights themselves, always after.
    """
    return _added(scores, beside) / roots


def nearby_lengths(vectors: Vectors, beside: Numbers) -> Scores:
    """Return the length of each note's vector with those of its neighbours added, by weight.

    A note that has no vector yet is a row of zeros. Rows of `vectors` beyond those of `beside` are
    of notes that are only neighbours.
    """
    lengths = np.empty(len(beside), np.float32)
    for start in range(0, len(beside), _BLOCK_ROWS):
        block = beside[start : start + _BLOCK_ROWS]
        added = vectors[start : start + len(block)].astype(np.float32)
        for weight, numbers in zip(_column_weights(), block.T, strict=True):
            added += np.float32(weight) * vectors[numbers] * (numbers >= 0)[:, np.newaxis]
        lengths[start : start + len(block)] = np.linalg.norm(added, axis=1)
    return lengths


def meaning_nearby(cosines: Scores, beside: Numbers, lengths: Scores) -> Scores:
    """Return how near the query is to each note with its neighbours: a cosine as well.

    `cosines` is how near it is to each by itself, 0 to one without a vector. The mean of what the
    neighbours mean finds more than the vector of their joined texts does. Where nothing has a
    vector, the result is nan.
    """
    added = _added(cosines, beside)
    return np.divide(added, lengths, out=np.full_like(added, np.nan), where=lengths > 0)


def _added(scores: Scores, beside: Numbers) -> Scores:
    padded = np.append(scores, np.float32(0))  # so that -1, none, is worth nothing
    added = scores.astype(np.float32)
    for weight, numbers in zip(_column_weights(), beside.T, strict=True):
        added += np.float32(weight) * padded[numbers]
    return added


def _column_weights() -> list[float]:
    return [weight for weight in WEIGHTS for _ in ("before", "after")]
