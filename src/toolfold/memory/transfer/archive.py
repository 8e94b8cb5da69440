"""The Archive protocol: everything that a store keeps of one namespace, read and merged whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

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
