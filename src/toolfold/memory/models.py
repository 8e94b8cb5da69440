"""What is remembered, and the small forms in which it is shown. Standard library only."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from toolfold.jsontypes import JsonObject
from toolfold.memory.compact import (
    CompactHealthInfo,
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
)

__all__ = ["CompactHealthInfo", "CompactMemory", "CompactSearchResult", "ExplainedMemory"]

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


def preview(content: str) -> str:
    """Return the beginning of a text, on one line."""
    content = content.strip()
    line = " ".join(content[: 4 * PREVIEW_CHARS].split())
    if len(line) <= PREVIEW_CHARS and len(content) <= 4 * PREVIEW_CHARS:
        return line
    return f"{line[: PREVIEW_CHARS - 1].rstrip()}…"
