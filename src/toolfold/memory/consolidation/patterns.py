"""Find what many notes speak of together. Pure.

A pattern is a word or a tag, and others that stand with it in the same notes far more often than by
chance. Its confidence is that of the rule of succession: of n notes on the first k speak of the
other too, so the next one does with (k + 1) / (n + 2). Notes of one conversation or document do not
make a pattern among themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.memory.consolidation.associations import items
from toolfold.memory.consolidation.study import StudiedNote

_Rows: TypeAlias = NDArray[np.int64]

MAX_PATTERNS: Final = 50
LEAST_CONFIDENCE: Final = 0.5

# How much more often than by chance.
_LEAST_LIFT: Final = 3.0
_MAX_ITEMS: Final = 4_000
# What so many notes speak of is no news.
_MAX_ROWS: Final = 2_000
_FEWEST_CHARS: Final = 3
_MAX_NAMES: Final = 6
_SAME_NOTES_SHARE: Final = 0.5


class FoundPattern(NamedTuple):
    """Things that come together, and the rows that speak of them."""

    items: tuple[str, ...]
    """The first one, and what comes with it."""

    confidence: float
    of: int
    """How many notes speak of the first."""

    rows: tuple[int, ...]
    """Those that speak of the first and the second."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Which notes have which of the items that come into question."""

    names: list[str]
    by_item: list[_Rows]
    by_row: list[list[int]]


class _Rule(NamedTuple):
    first: int
    second: int
    worth: float


def find_patterns(notes: Sequence[StudiedNote], *, fewest: int) -> list[FoundPattern]:
    """Return what comes together on at least that many occasions, the most telling first."""
    table = _table(notes, fewest)
    rules = [rule for item in range(len(table.names)) for rule in _rules(table, item, fewest)]
    rules.sort(key=lambda rule: (-rule.worth, table.names[rule.first], table.names[rule.second]))
    found: list[FoundPattern] = []
    for rule in rules:
        pattern = _pattern(table, rule)
        if len({notes[row].occasion for row in pattern.rows}) >= fewest:
            _take(found, pattern)
        if len(found) > MAX_PATTERNS:
            break
    return found[:MAX_PATTERNS]


def _table(notes: Sequence[StudiedNote], fewest: int) -> _Table:
    rows: dict[str, list[int]] = {}
    for row, note in enumerate(notes):
        for item in items(note):
            if len(item.lstrip("#")) >= _FEWEST_CHARS:
                rows.setdefault(item, []).append(row)
    telling = [item for item, found in rows.items() if fewest <= len(found) <= _MAX_ROWS]
    telling.sort(key=lambda item: (-len(rows[item]), item))
    names = sorted(telling[:_MAX_ITEMS])
    by_row: list[list[int]] = [[] for _ in notes]
    for number, item in enumerate(names):
        for row in rows[item]:
            by_row[row].append(number)
    return _Table(names, [np.array(rows[item], np.int64) for item in names], by_row)


def _rules(table: _Table, item: int, fewest: int) -> list[_Rule]:
    """Return what comes with one item."""
    beside = [other for row in table.by_item[item].tolist() for other in table.by_row[row]]
    times = np.bincount(np.array(beside, np.int64), minlength=len(table.names))
    of = len(table.by_item[item])
    rules = []
    for other in np.flatnonzero(times >= fewest).tolist():
        both, others = int(times[other]), len(table.by_item[other])
        lift = both * len(table.by_row) / (of * others)
        is_first = (of, item) < (others, other)  # the rarer one says more of the other
        if is_first and _confidence(both, of) >= LEAST_CONFIDENCE and lift >= _LEAST_LIFT:
            rules.append(_Rule(item, other, round(both * float(np.log(lift)), 6)))
    return rules


def _pattern(table: _Table, rule: _Rule) -> FoundPattern:
    first, second = table.by_item[rule.first], table.by_item[rule.second]
    rows = np.intersect1d(first, second).tolist()
    names = (table.names[rule.first], table.names[rule.second])
    return FoundPattern(names, _confidence(len(rows), len(first)), len(first), tuple(rows))


def _take(found: list[FoundPattern], pattern: FoundPattern) -> None:
    """Add a pattern, or its names to one that stands on much the same notes."""
    rows = set(pattern.rows)
    for place, other in enumerate(found):
        common = len(rows & set(other.rows))
        if common >= _SAME_NOTES_SHARE * min(len(rows), len(other.rows)):
            names = tuple(dict.fromkeys((*other.items, *pattern.items)))
            found[place] = other._replace(items=names[:_MAX_NAMES])
            return
    found.append(pattern)


def _confidence(both: int, of: int) -> float:
    return round((both + 1) / (of + 2), 4)
