"""What each strategy finds and does, in forms made to be read. Standard library only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from toolfold.errors import BadInput, count

_HASHES_SHOWN = 4
_LINES_SHOWN = 10


class Pattern(NamedTuple):
    """Things that many notes speak of together."""

    text: str
    confidence: float
    """From 0 to 1: how sure it is that a note on the first speaks of the other."""

    hashes: tuple[str, ...]
    """The notes behind it, newest first."""

    is_new: bool

    def __repr__(self) -> str:
        return f"{self.confidence:.2f} {self.text}{_named(self.hashes)}"


class Cluster(NamedTuple):
    """Notes on one subject, and what they say of it in their own words."""

    summary: str
    words: tuple[str, ...]
    """What tells them from other notes."""

    hashes: tuple[str, ...]
    """The most central first."""

    is_new: bool

    def __repr__(self) -> str:
        return f"{', '.join(self.words)}{_named(self.hashes)}: {self.summary}"


class Association(NamedTuple):
    """Two notes that have to do with each other, and are linked now."""

    hash: str
    other: str
    strength: float
    why: str

    def __repr__(self) -> str:
        return f"{self.hash} and {self.other} {self.strength:.2f}: {self.why}"


class Duplicate(NamedTuple):
    """A note that says what others said too. They are hidden, and can be restored."""

    hash: str
    superseded: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{self.hash} supersedes {', '.join(self.superseded)}"


class ConsolidationCounts(NamedTuple):
    """How much a consolidation found that was not known, and did."""

    looked_at: int = 0
    patterns: int = 0
    clusters: int = 0
    associations: int = 0
    superseded: int = 0
    archived: int = 0
    faded: int = 0
    """Notes whose influence on the order of what is found is another one now."""

    def __repr__(self) -> str:
        parts = [f"{value:,} {name}" for name, value in self._asdict().items() if value]
        return ", ".join(part.replace("_", " ") for part in parts) or "nothing"


class Consolidated(NamedTuple):
    """What a consolidation found and did, or would do. Long lists are cut; `counts` has it all."""

    id: str | None
    """What `undo` takes; None if nothing was written."""

    strategy: str
    counts: ConsolidationCounts
    patterns: tuple[Pattern, ...]
    clusters: tuple[Cluster, ...]
    associations: tuple[Association, ...]
    duplicates: tuple[Duplicate, ...]
    archived: tuple[str, ...]
    skipped: int
    """Notes that were changed while it was at work, and were left alone."""

    def __repr__(self) -> str:
        name = f"Consolidation {self.id}" if self.id else "A consolidation that changed nothing"
        lines = [f"{name} ({self.strategy}): {self.counts!r}."]
        lists = self.patterns, self.clusters, self.duplicates, self.associations, self.archived
        names = "Patterns", "Clusters", "Near-duplicates", "Associations", "Archived"
        for heading, found in zip(names, lists, strict=True):
            lines += _section(heading, found)
        if self.skipped:
            lines.append(f"{count(self.skipped, 'note')} changed during this and left unchanged.")
        return "\n".join(lines)


class PastConsolidation(NamedTuple):
    """One consolidation of the past."""

    id: str
    at: float
    strategy: str
    days_back: float | None
    counts: ConsolidationCounts
    undone: float | None
    """When it was undone, if it was."""

    def __repr__(self) -> str:
        window = f", {self.days_back:g} days back" if self.days_back is not None else ""
        undone = f", undone {_time(self.undone)}" if self.undone is not None else ""
        return f"{self.id} {_time(self.at)} {self.strategy}{window}{undone}: {self.counts!r}"


class Undone(NamedTuple):
    """What undoing a consolidation brought back."""

    id: str
    counts: ConsolidationCounts
    """Of what was reversed."""

    skipped: tuple[str, ...]
    """Notes that were changed since; they stay as they are."""

    def __repr__(self) -> str:
        kept = f" Changed since, and left as they are{_named(self.skipped)}." * bool(self.skipped)
        return f"Consolidation {self.id} is undone: {self.counts!r}.{kept}"


def _section(heading: str, found: tuple[object, ...]) -> list[str]:
    if not found:
        return []
    shown = [f"  {each if isinstance(each, str) else repr(each)}" for each in found[:_LINES_SHOWN]]
    more = [f"  … and {len(found) - _LINES_SHOWN} more"] * (len(found) > _LINES_SHOWN)
    return [f"{heading}:", *shown, *more]


def _named(hashes: tuple[str, ...]) -> str:
    more = ", …" * (len(hashes) > _HASHES_SHOWN)
    return f" ({count(len(hashes), 'note')}: {', '.join(hashes[:_HASHES_SHOWN])}{more})"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


# What each strategy of consolidation does. Pure.
#
# |                             | minimal | speed      | balanced       | quality            |
# | --------------------------- | ------- | ---------- | -------------- | ------------------ |
# | near-duplicates superseded  | yes     | yes        | yes            | yes                |
# | influence fades             |         | yes        | yes            | yes                |
# | poor and unused archived    |         | yes        | yes            | yes                |
# | patterns, of how many notes |         | 4 or more  | 4 or more      | 3 or more          |
# | associations, for each note |         |            | the 3 nearest  | the 5 nearest      |
# | clusters, of how many notes |         |            | 4 or more      | 3 or more          |
#
# `minimal` and `speed` compare no vectors, so they take seconds for 100,000 notes; the others
# compare each note with each.

StrategyName: TypeAlias = Literal["balanced", "speed", "quality", "minimal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How notes are compared with each other."""

    links_per_note: int
    least_strength: float
    """Of an association; see `associations`."""

    least_nearness: float
    """Between the note in the middle of a cluster and each of the others."""

    fewest_in_cluster: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What is done beside superseding near-duplicates."""

    ages: bool = True
    """Whether influence fades, and the poor and unused are archived."""

    fewest_in_pattern: int | None = None
    """None: no patterns are looked for."""

    comparing: Comparison | None = None


STRATEGIES: Final[dict[StrategyName, Strategy]] = {
    "minimal": Strategy(ages=False),
    "speed": Strategy(fewest_in_pattern=4),
    "balanced": Strategy(
        fewest_in_pattern=4,
        comparing=Comparison(
            links_per_note=3, least_strength=0.7, least_nearness=0.6, fewest_in_cluster=4
        ),
    ),
    "quality": Strategy(
        fewest_in_pattern=3,
        comparing=Comparison(
            links_per_note=5, least_strength=0.6, least_nearness=0.55, fewest_in_cluster=3
        ),
    ),
}


def check_strategy(value: object) -> StrategyName:
    """Return the name of a strategy.

    Raises:
        BadInput: There is none of that name.
    """
    for name in get_args(StrategyName):
        if value == name:
            found: StrategyName = name
            return found
    known = ", ".join(map(repr, get_args(StrategyName)))
    raise BadInput(f"There is no strategy {str(value)[:60]!r}. There are: {known}.")
