"""What each strategy of consolidation does. Pure.

|                             | minimal | speed      | balanced       | quality            |
| --------------------------- | ------- | ---------- | -------------- | ------------------ |
| near-duplicates superseded  | yes     | yes        | yes            | yes                |
| influence fades             |         | yes        | yes            | yes                |
| poor and unused archived    |         | yes        | yes            | yes                |
| patterns, of how many notes |         | 4 or more  | 4 or more      | 3 or more          |
| associations, for each note |         |            | the 3 nearest  | the 5 nearest      |
| clusters, of how many notes |         |            | 4 or more      | 3 or more          |

`minimal` and `speed` compare no vectors, so they take seconds for 100,000 notes; the others compare
each note with each.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from toolfold.errors import BadInput

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
