"""The small forms in which notes are shown. Light to import, for scripts that only search."""

from datetime import datetime
from typing import NamedTuple


class CompactMemory(NamedTuple):
    """A note in one line; `get(hash)` returns the whole of it."""

    hash: str
    preview: str
    tags: tuple[str, ...]
    created: float
    score: float

    def __repr__(self) -> str:
        return _line(self)


class ExplainedMemory(NamedTuple):
    """A note in one line, and why it was found."""

    hash: str
    preview: str
    tags: tuple[str, ...]
    created: float
    score: float
    why: str

    def __repr__(self) -> str:
        return f"{_line(self)}\n    {self.why}"


class CompactSearchResult(NamedTuple):
    """The best matches, best first; `total` counts all there are."""

    memories: tuple[CompactMemory | ExplainedMemory, ...]
    total: int
    query: str

    def __repr__(self) -> str:
        about = f" for {self.query!r}" if self.query else ""
        if not self.total:
            return f"No notes{about}."
        heading = f"{len(self.memories)} of {self.total} notes{about}:"
        return "\n".join([heading, *map(repr, self.memories)])


class CompactHealthInfo(NamedTuple):
    """How the memory is."""

    status: str
    """`ok`, or what is wrong in one sentence."""

    count: int  # type: ignore[assignment]  # hides the method of tuples
    backend: str
    ready: bool
    """Whether every note is found by its meaning, not by its words alone."""

    def __repr__(self) -> str:
        ready = "ready" if self.ready else "still learning what they mean"
        notes = "1 note" if self.count == 1 else f"{self.count} notes"
        return f"Memory {self.status}: {notes} in {self.backend}, {ready}."


def _line(memory: CompactMemory | ExplainedMemory) -> str:
    day = _day(memory.created)
    tags = f" [{', '.join(memory.tags)}]" if memory.tags else ""
    return f"{memory.hash} {day}{tags} {memory.score:.2f}: {memory.preview}"


def _day(seconds: float) -> str:
    try:
        return str(datetime.fromtimestamp(seconds).astimezone().date())
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g}"
