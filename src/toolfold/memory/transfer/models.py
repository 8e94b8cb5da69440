"""What came of moving memory, in forms made to be read, and what keeps an archive."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from toolfold.errors import count
from toolfold.memory.graph.models import Fault
from toolfold.memory.transfer.records import ArchiveRecord

MergeResult: TypeAlias = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What came of one record: what was done, or why it could not be."""

    outcome: MergeResult | None = None
    key: int | None = None
    """Of the note that needs a vector by now."""

    reason: str = ""


class Archive(Protocol):
    """Reads and merges what is kept beside the knowledge graph, which has its own format.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then.
    """

    async def export(self, namespace: str, take: Callable[[ArchiveRecord], None]) -> None:
        """Give `take` everything there is at one moment, always in the same order.

        It is called in a worker thread, with one record at a time: notes by age, each before its
        versions, then events by age, then documents by path. What it raises ends the export.
        """

    async def merge(
        self, namespace: str, records: Sequence[ArchiveRecord], *, now: float, dry_run: bool = False
    ) -> list[MergeOutcome]:
        """Keep what is not there yet, and return for each record what came of it.

        What is there stays, unless the record was changed later: then the note is changed too, and
        how it was is kept as a version. Tags and links are added and never taken away. Nothing is
        deleted or restored: who did that here meant it. A version belongs to a note that is there
        by then, and comes before its present one. With `dry_run` nothing is kept in the end.
        """

    async def move(self, formerly: str, namespace: str, *, now: float) -> list[int]:
        """Have all of one namespace, with its graph, be in another; return notes without vectors.

        Where both have something, it is merged as `merge` does, and the first one is kept under
        another name.
        """


Format: TypeAlias = Literal["toolfold", "server-memory"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

Source: TypeAlias = Literal[
    "toolfold", "server-memory", "mcp-memory-service", "chatgpt", "claude", "claude-code"
]

MAX_FAULTS: Final = 1_000
_SHOWN_FAULTS: Final = 20


class Change(NamedTuple):
    """What came of everything of one kind."""

    what: str
    """notes, versions, events, documents, entities, observations or relations."""

    added: int
    updated: int
    unchanged: int

    def __repr__(self) -> str:
        counts = f"{self.added} added, {self.updated} updated, {self.unchanged} unchanged"
        return f"{self.what}: {counts}"


class Imported(NamedTuple):
    """What was found in a file, and what came of it."""

    source: Source
    dry_run: bool
    """Whether nothing was changed, and this is what would have been."""

    changes: tuple[Change, ...]
    """For each kind of thing that was in it."""

    fault_count: int
    faults: tuple[Fault, ...]
    """The first of them; the others were left out for their number."""

    def __repr__(self) -> str:
        nothing = " Nothing was changed: this is what would come of it." if self.dry_run else ""
        lines = [f"Memory of {self.source}.{nothing}"]
        lines += [f"  {change!r}" for change in self.changes]
        if not self.changes:
            lines.append("  It is empty.")
        if self.faults:
            shown = self.faults[:_SHOWN_FAULTS]
            lines.append(f"{self.fault_count} could not be used:")
            lines += [f"  {fault!r}" for fault in shown]
            if self.fault_count > len(shown):
                lines.append(f"  and {self.fault_count - len(shown)} more")
        return "\n".join(lines)


class Exported(NamedTuple):
    """What was written into a file."""

    path: str
    format: str
    counts: dict[str, int]
    """How many of each kind."""

    size: int

    def __repr__(self) -> str:
        said = ", ".join(
            count(number, "entity" if what == "entities" else what.removesuffix("s"), what)
            for what, number in self.counts.items()
            if number
        )
        return f"{said or 'Nothing'} written to {self.path} ({self.size:,} bytes)."


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
