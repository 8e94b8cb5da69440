"""What the journal's newest calls say of each tool, and whether anything was added to it."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NEWEST_CALLS: Final = 20_000

_CALLS: Final = "SELECT tool, outcome, duration_s, started_at FROM calls ORDER BY id DESC LIMIT ?"
_VERSION: Final = """
    SELECT (SELECT max(number) FROM beginnings), (SELECT count(*) FROM ends),
        (SELECT max(id) FROM calls), (SELECT total(done) FROM progress),
        (SELECT max(id) FROM decisions)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatistics:
    """How one tool did in the newest calls."""

    calls: int
    errors: int
    p50_s: float
    p95_s: float
    last_at: float


def tool_statistics(
    connection: sqlite3.Connection, limit: int = NEWEST_CALLS
) -> dict[str, ToolStatistics]:
    """Return the statistics of each tool among the newest `limit` calls, by its path."""
    durations: dict[str, list[float]] = {}
    errors: dict[str, int] = {}
    last: dict[str, float] = {}
    for tool, outcome, duration_s, started_at in connection.execute(_CALLS, (limit,)):
        durations.setdefault(tool, []).append(duration_s)
        errors[tool] = errors.get(tool, 0) + (outcome != "ok")
        last[tool] = max(started_at, last.get(tool, 0.0))
    return {
        tool: ToolStatistics(
            calls=len(times),
            errors=errors[tool],
            p50_s=quantile(times, 0.5),
            p95_s=quantile(times, 0.95),
            last_at=last[tool],
        )
        for tool, times in durations.items()
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest of `values` that at least `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def journal_version(connection: sqlite3.Connection) -> tuple[object, ...]:
    """Return a value that changes when a run begins, ends, calls or reports its progress."""
    version: tuple[object, ...] = connection.execute(_VERSION).fetchone()
    return version
