"""Give the chunks of a changed document their places, so that those which stay keep theirs."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from toolfold.memory.documents.models import Placed

STEP: Final = 1 << 20
"""Between two chunks that are placed afresh; so often, and more, one fits between them."""


def place(kept: Sequence[Placed], contents: Sequence[str]) -> list[int]:
    """Return a position for each content, in ascending order.

    A content that is kept stays where it is, as far as the order allows. Places in between are
    halved; where no place is left, all are placed afresh.
    """
    positions: list[int | None] = [None] * len(contents)
    for new, old in _common(kept, contents):
        positions[new] = kept[old].position
    try:
        return _filled(positions)
    except _NoPlace:
        return [STEP * (number + 1) for number in range(len(contents))]


class _NoPlace(Exception):
    pass


def _common(kept: Sequence[Placed], contents: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of the same content, new and old, that ascend on both sides: the most there are.

    That is the longest ascending run among the old numbers. Of a content that is there several
    times, the first new one is the first old one, and so on.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    for old, each in enumerate(kept):
        numbers[each.content].append(old)
    pairs = []
    taken: dict[str, int] = defaultdict(int)
    for new, content in enumerate(contents):
        if taken[content] < len(numbers.get(content, ())):
            pairs.append((new, numbers[content][taken[content]]))
            taken[content] += 1
    return _longest_ascending(pairs)


def _longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ends: list[int] = []
    last_of: list[int] = []
    before: list[int | None] = []
    for number, (_, old) in enumerate(pairs):
        length = bisect_left(ends, old)
        if length == len(ends):
            ends.append(old)
            last_of.append(number)
        else:
            ends[length], last_of[length] = old, number
        before.append(last_of[length - 1] if length else None)
    found = []
    at = last_of[-1] if last_of else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _filled(positions: list[int | None]) -> list[int]:
    found: list[int] = []
    start = 0
    while start < len(positions):
        fixed = positions[start]
        if fixed is not None:
            found.append(fixed)
            start += 1
            continue
        end = next(
            (at for at in range(start, len(positions)) if positions[at] is not None), len(positions)
        )
        following = positions[end] if end < len(positions) else None
        found.extend(_between(found[-1] if found else None, following, end - start))
        start = end
    return found


def _between(before: int | None, after: int | None, count: int) -> list[int]:
    if after is None:
        first = 0 if before is None else before
        return [first + STEP * number for number in range(1, count + 1)]
    if before is None:
        return [after - STEP * number for number in range(count, 0, -1)]
    gap = (after - before) // (count + 1)
    if gap < 1:
        raise _NoPlace
    return [before + gap * number for number in range(1, count + 1)]
