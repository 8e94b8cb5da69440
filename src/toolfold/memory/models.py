"""What is remembered, and the small forms in which it is shown. Standard library only."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from toolfold.jsontypes import JsonObject

LinkKind: TypeAlias = Literal["supersedes", "associated"]
TagMatch: TypeAlias = Literal["any", "all"]

DEFAULT_TYPE: Final = "note"
DEFAULT_QUALITY: Final = 0.5
PREVIEW_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """That a note has to do with another one."""

    kind: LinkKind
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is to be remembered. Everything in it is clean and within bounds."""

    content: str
    hash: str
    """See `hashes.note_hash`."""

    type: str = DEFAULT_TYPE
    tags: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    source: str = ""
    """Where it comes from: a program, a file, an address."""

    thread: str | None = None
    """The conversation or document that it is a part of."""

    position: int | None = None
    """Its place there. Parts that follow each other are each other's context."""

    quality: float = DEFAULT_QUALITY
    """From 0 to 1."""

    created: float
    """In seconds since 1970, as are all times here."""

    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Draft):
    """One remembered statement, as it is now. Its earlier versions are kept beside it."""

    namespace: str
    updated: float
    version: int = 1
    deleted: float | None = None
    """When it was deleted or archived; such a note is not found, and can be restored."""


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


def preview(content: str) -> str:
    """Return the beginning of a text, on one line."""
    content = content.strip()
    line = " ".join(content[: 4 * PREVIEW_CHARS].split())
    if len(line) <= PREVIEW_CHARS and len(content) <= 4 * PREVIEW_CHARS:
        return line
    return f"{line[: PREVIEW_CHARS - 1].rstrip()}…"


def _line(memory: CompactMemory | ExplainedMemory) -> str:
    day = _day(memory.created)
    tags = f" [{', '.join(memory.tags)}]" if memory.tags else ""
    return f"{memory.hash} {day}{tags} {memory.score:.2f}: {memory.preview}"


def _day(seconds: float) -> str:
    try:
        return str(datetime.fromtimestamp(seconds).astimezone().date())
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g}"
