"""Compare every note with every other by meaning, block by block."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.embedding import UNRELATED, nearness

Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
Tick: TypeAlias = Callable[[int, int], None]
"""Told how much is done, and of how much."""

MAX_NEIGHBOURS: Final = 50
"""Of each note; of more, the nearest count."""

_BLOCK_ROWS: Final = 1_024
_BLOCK_COLUMNS: Final = 8_192
_HEAD_BYTES: Final = 4
_DECIMALS: Final = 4


class NoteVectors(NamedTuple):
    """Of each note a row of whole numbers and their scale; zeros where there is no vector."""

    levels: NDArray[np.int8]
    scales: Floats


class NearbyPairs(NamedTuple):
    """Pairs of rows and how near they are, each pair both ways; by row, and then nearest first."""

    rows: Rows
    columns: Rows
    nearness: Floats


def read_vectors(blobs: Sequence[bytes | None]) -> NoteVectors:
    """Return vectors as `embedding.quantize` wrote them. An odd one counts as none."""
    size = max((len(blob) for blob in blobs if blob), default=_HEAD_BYTES)
    empty = bytes(size)
    joined = b"".join(blob if blob and len(blob) == size else empty for blob in blobs)
    layout = np.dtype([("scale", "<f4"), ("levels", "i1", (size - _HEAD_BYTES,))])
    table = np.frombuffer(joined, layout)
    return NoteVectors(np.ascontiguousarray(table["levels"]), table["scale"].astype(np.float32))


def find_nearby(vectors: NoteVectors, *, least: float, tick: Tick) -> NearbyPairs:
    """Return for each row its nearest others, of those at least so near.

    Memory is bounded by the blocks and by `MOST_NEIGHBOURS`. Sums of products of whole numbers are
    exact in any order, so the same vectors give the same answer on any machine.
    """
    count = len(vectors.scales)
    found = []
    for start in range(0, count, _BLOCK_ROWS):
        tick(start, count)
        found.append(_nearby_block(vectors, start, min(start + _BLOCK_ROWS, count), least))
    tick(count, count)
    if not found:
        none = np.zeros(0, np.int64)
        return NearbyPairs(none, none, np.zeros(0, np.float32))
    return NearbyPairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def nearness_of(vectors: NoteVectors, left: Rows, right: Rows) -> Floats:
    """Return how near these pairs are."""
    found = np.empty(len(left), np.float32)
    for start in range(0, len(left), _BLOCK_COLUMNS):
        some = slice(start, start + _BLOCK_COLUMNS)
        a, b = vectors.levels[left[some]], vectors.levels[right[some]]
        products = np.einsum("ij,ij->i", a.astype(np.float32), b.astype(np.float32))
        found[some] = products * vectors.scales[left[some]] * vectors.scales[right[some]]
    return np.round(nearness(found), _DECIMALS)


def _nearby_block(vectors: NoteVectors, start: int, stop: int, least: float) -> NearbyPairs:
    levels = vectors.levels[start:stop].astype(np.float32)
    best = NearbyPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    for begin in range(0, len(vectors.scales), _BLOCK_COLUMNS):
        end = begin + _BLOCK_COLUMNS
        product = levels @ vectors.levels[begin:end].astype(np.float32).T
        product *= vectors.scales[start:stop, np.newaxis]
        product *= vectors.scales[begin:end]
        at = np.flatnonzero(product >= UNRELATED + least * (1 - UNRELATED))
        rows, columns = np.divmod(at, product.shape[1])
        found = np.round(nearness(product.ravel()[at]), _DECIMALS)
        rows, columns = rows + start, columns + begin
        is_other = rows != columns
        best = _nearest(
            NearbyPairs(
                np.concatenate([best.rows, rows[is_other]]),
                np.concatenate([best.columns, columns[is_other]]),
                np.concatenate([best.nearness, found[is_other]]),
            )
        )
    return best


def _nearest(found: NearbyPairs) -> NearbyPairs:
    """Return them in order, and of each row no more than the nearest."""
    order = np.lexsort((found.columns, -found.nearness, found.rows))
    rows = found.rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = order[place < MAX_NEIGHBOURS]
    return NearbyPairs(found.rows[kept], found.columns[kept], found.nearness[kept])
