"""Find groups of notes on one subject. Pure."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from toolfold.memory.consolidation.similarity import NearbyPairs, Rows
from toolfold.memory.consolidation.strategies import Comparison
from toolfold.memory.consolidation.study import StudiedNote

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
