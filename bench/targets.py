"""What every figure is held to, in one table. Nothing else in `bench` has a target of its own.

A target is changed here, with the day, when the goal changes; never because a figure got worse.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a figure may be, or the least, and since when."""

    limit: float
    set_on: str
    is_least: bool = False

    def holds(self, value: float) -> bool:
        """Whether a figure is as it must be."""
        return value >= self.limit if self.is_least else value <= self.limit


def _least(limit: float, set_on: str) -> Target:
    return Target(limit, set_on, is_least=True)


TARGETS: Final = {
    # bench/run.py: ratios of pairs
    "job-1": Target(1.28, "2026-11-16"),
    "job-10": Target(1.33, "2026-11-16"),
    "job-1-daemon": Target(1.30, "2026-11-16"),
    "job-1-guarded": Target(1.06, "2026-11-16"),
    "reads-50": Target(0.2, "2026-11-16"),
    "null-call": Target(2.5, "2026-11-16"),
    "single-call": Target(4.0, "2026-11-16"),
    # bench/start.py, bench/hooks.py: times of bare Python, and how much faster than the peer
    "start-bare": Target(3.0, "2026-11-16"),
    "start-fastmcp": _least(20.0, "2026-11-15"),
    "hook-bare": Target(4.0, "2026-11-16"),
    "hook-peer": _least(20.0, "2026-11-16"),
    "hook-saved": _least(0.75, "2026-11-16"),
    # bench/sandbox.py, bench/skills.py, bench/sessions.py, bench/audit.py, bench/ledger.py
    "checkout-ms": Target(1.0, "2026-11-15"),
    "ping-pongs-monty": Target(4.0, "2026-11-15"),
    "ping-pongs-cpython": Target(6.0, "2026-11-15"),
    "plain-work": Target(1.10, "2026-11-16"),
    "skill-call": Target(1.15, "2026-11-16"),
    "session-small": Target(2.5, "2026-11-16"),
    "audit": Target(1.05, "2026-11-16"),
    "ledger": Target(1.05, "2026-11-16"),
    "rest-growth": Target(1.05, "2026-11-16"),
    # bench/dashboard.py: 100,000 runs and 100,000 notes
    "dashboard-p95-ms": Target(200, "2026-11-16"),
    "dashboard-paint-ms": Target(1_000, "2026-11-16"),
    "dashboard-growth": Target(1.05, "2026-11-16"),
    # bench/catalog.py: a large catalogue
    "catalog-ms": Target(100, "2026-11-16"),
    "catalog-mb": Target(100, "2026-11-16"),
    # bench/operations.py: points of R@5 over BM25, and a search among 10,000 operations
    "operations-gain": _least(10.0, "2026-11-18"),
    "operations-search-ms": Target(50.0, "2026-11-18"),
    # bench/memory_peer.py: parts of the peer's time
    "memory-first": Target(0.05, "2026-11-15"),
    "memory-search": Target(0.33, "2026-11-15"),
    "memory-store": Target(0.1, "2026-11-15"),
    # bench/memory_scale.py
    "memory-growth": Target(1.5, "2026-11-16"),
    "memory-added-mb": Target(10.0, "2026-11-16"),
    "memory-opening-ms": Target(100.0, "2026-11-16"),
    "memory-start": Target(2.0, "2026-11-16"),
    # bench/locomo.py, bench/consolidation.py, bench/documents.py, bench/graph.py, bench/privacy.py
    "locomo-sessions-r5": _least(0.877, "2026-11-15"),
    "locomo-sessions-r10": _least(0.934, "2026-11-15"),
    "consolidation-loss": Target(0.002, "2026-11-15"),
    # bench/supersession.py
    "supersession-now": _least(0.90, "2026-11-16"),
    "supersession-then": _least(0.85, "2026-11-16"),
    "supersession-false": Target(0.01, "2026-11-16"),
    "supersession-beam": _least(0.90, "2026-11-16"),
    # bench/memory_audit.py: for each kind; processor seconds and memory for 100,000 notes
    "memory-audit-recall": _least(0.95, "2026-11-16"),
    "memory-audit-precision": _least(0.90, "2026-11-16"),
    "memory-audit-s": Target(120.0, "2026-11-16"),
    "memory-audit-mb": Target(400.0, "2026-11-16"),
    "documents": Target(2.0, "2026-11-15"),
    "graph-write": _least(30.0, "2026-11-15"),
    "graph-search": _least(10.0, "2026-11-15"),
    "graph-read": _least(1.0, "2026-11-15"),
    "graph-growth": Target(2.0, "2026-11-15"),
    "privacy-mb-s": _least(1.0, "2026-11-16"),
    # bench/agentdojo.py: the share of tasks that run unasked under `careful`
    "agentdojo-unasked": _least(0.5, "2026-11-16"),
}


def limit(name: str) -> float:
    """Return what the figure of this name is held to."""
    return TARGETS[name].limit
