"""Count what came of an import."""

from collections import Counter, defaultdict

from toolfold.memory.graph.models import Fault
from toolfold.memory.transfer.archive import MergeResult
from toolfold.memory.transfer.models import MAX_FAULTS, Change, Imported, Source

_MAX_REASON_CHARS = 300


class Outcomes:
    """What has come of an import so far."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[MergeResult]] = defaultdict(Counter)
        self._faults: list[Fault] = []
        self._fault_count = 0

    def add(self, what: str, outcome: MergeResult) -> None:
        """Count one thing."""
        self._counts[what][outcome] += 1

    def count(self, what: str, *, added: int, of: int) -> None:
        """Count many things, of which the others were there already."""
        if of:
            self._counts[what]["added"] += added
            self._counts[what]["unchanged"] += of - added

    def add_fault(self, fault: Fault) -> None:
        """Count what could not be used, and keep the first of its kind for the reader."""
        self._fault_count += 1
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(Fault(fault.line, fault.reason[:_MAX_REASON_CHARS]))

    def result(self, source: Source, *, dry_run: bool) -> Imported:
        """Return all of it."""
        changes = tuple(
            Change(what, count["added"], count["updated"], count["unchanged"])
            for what, count in self._counts.items()
        )
        return Imported(source, dry_run, changes, self._fault_count, tuple(self._faults))
