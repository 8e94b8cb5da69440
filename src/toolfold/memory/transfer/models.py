"""What came of moving memory, in forms made to be read."""

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from toolfold.memory.graph.models import Fault

Format: TypeAlias = Literal["toolfold", "server-memory"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

Source: TypeAlias = Literal["toolfold", "server-memory", "mcp-memory-service"]

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
        said = ", ".join(f"{count} {what}" for what, count in self.counts.items() if count)
        return f"{said or 'Nothing'} written to {self.path} ({self.size:,} bytes)."
