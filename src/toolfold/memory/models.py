"""What is remembered, its names, and the forms in which it is shown. Light to import."""

import hashlib
import string
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolfold.errors import BadInput, count
from toolfold.jsontypes import Json, JsonObject, plain


class CompactMemory(NamedTuple):
    """A note in one line; `get(hash)` returns the whole of it."""

    hash: str
    preview: str
    tags: tuple[str, ...]
    created: float
    score: float
    superseded: str = ""
    """Empty if it holds; else by which note it is superseded, and since when."""

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
    superseded: str = ""

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
        heading = f"{len(self.memories)} of {count(self.total, 'note')}{about}:"
        lines = map(repr, self.memories) if self.query else map(_unranked_line, self.memories)
        return "\n".join([heading, *lines])


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
        notes = count(self.count, "note")
        return f"Memory {self.status}: {notes} in {self.backend}, {ready}."


def _unranked_line(memory: CompactMemory | ExplainedMemory) -> str:
    """Return a note as a listing has it: where nothing was asked for, a score says nothing."""
    return _line(memory, is_ranked=False)


def _line(memory: CompactMemory | ExplainedMemory, *, is_ranked: bool = True) -> str:
    day = _day(memory.created)
    tags = f" [{', '.join(memory.tags)}]" if memory.tags else ""
    past = f" (superseded {memory.superseded})" if memory.superseded else ""
    score = f" {memory.score:.2f}" if is_ranked else ""
    return f"{memory.hash} {day}{tags}{score}: {memory.preview}{past}"


def superseded_by(name: str, until: float) -> str:
    """Say by which note one is superseded: `by 1a2b3c4d on 2026-03-02`."""
    return f"by {name} on {_day(until)}"


def _day(seconds: float) -> str:
    try:
        return str(datetime.fromtimestamp(seconds).astimezone().date())
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g}"


__all__ = ["CompactHealthInfo", "CompactMemory", "CompactSearchResult", "ExplainedMemory"]

LinkKind: TypeAlias = Literal["supersedes", "associated", "distinct"]
"""`distinct`: it looks as if it superseded the other one, and does not."""
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

    until: float | None = None
    """Until when it held, if another note supersedes it. It is still found."""

    superseded_by: str | None = None
    """The hash of that note."""


def preview(content: str, max_chars: int = PREVIEW_CHARS) -> str:
    """Return the beginning of a text, on one line."""
    content = content.strip()
    line = " ".join(content[: 4 * max_chars].split())
    if len(line) <= max_chars and len(content) <= 4 * max_chars:
        return line
    return f"{line[: max_chars - 1].rstrip()}…"


SHOWN_CHARS: Final = 8
"""How much of a hash is shown; whoever is shown it can use it as a name."""

MIN_PREFIX_CHARS: Final = 4
HASH_CHARS: Final = 64


def note_hash(content: str, *, thread: str | None = None, position: int | None = None) -> str:
    """Return the name of a note: the same in every store and every namespace.

    It is the SHA-256 of the content. A part of a conversation or document is named by its place as
    well: "Thanks!" may be said twice in a conversation, and each time stands beside other words.
    """
    # No part can hold a NUL, so two different notes never hash the same text.
    placed = content if thread is None else f"{content}\0{thread}\0{position}"
    return hashlib.sha256(placed.encode()).hexdigest()


def check_prefix(prefix: object) -> str:
    """Return the beginning of a hash as it is looked up.

    Raises:
        BadInput: No hash can begin that way, or too many might.
    """
    if not isinstance(prefix, str):
        raise BadInput(f"The hash of a note is text, not {type(prefix).__name__}: {prefix!r}.")
    cleaned = prefix.strip().lower()
    if not set(cleaned) <= set(string.hexdigits) or len(cleaned) > HASH_CHARS:
        raise BadInput(
            f"{_shortened(prefix)!r} is not the hash of a note. Hashes are hexadecimal, such as "
            "1a2b3c4d; search returns them."
        )
    if len(cleaned) < MIN_PREFIX_CHARS:
        raise BadInput(
            f"{prefix!r} is too short for a hash: give at least its first {MIN_PREFIX_CHARS} "
            f"characters, better {SHOWN_CHARS}."
        )
    return cleaned


def shown(full: str) -> str:
    """Return what people and models are shown of a hash."""
    return full[:SHOWN_CHARS]


def _shortened(text: str) -> str:
    return text if len(text) <= HASH_CHARS else f"{text[:HASH_CHARS]}…"


def as_named(value: Any) -> Any:
    """Return a value with plain named tuples in place of our own classes, for guest code."""
    if is_dataclass(value) and not isinstance(value, type):
        names = tuple(each.name for each in fields(value))
        parts = [as_named(getattr(value, name)) for name in names]
        return _named(type(value).__name__, names)(*parts)
    if isinstance(value, tuple):
        parts = [as_named(each) for each in value]
        names = getattr(value, "_fields", ())
        return _named(type(value).__name__, names)(*parts) if names else tuple(parts)
    if isinstance(value, list):
        return [as_named(each) for each in value]
    return value


@cache
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields, module="__main__")  # the name alone is shown


def as_it_is(value: Any) -> Any:
    """Return a value as our services have it."""
    return value


def as_json(value: Any) -> Json:
    """Return a value as JSON has it: objects for named tuples."""
    return plain(as_named(value))


def as_text(value: Any) -> str:
    """Return a value as a model or a person reads it."""
    if isinstance(value, Note):
        return _whole(value)
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return "\n".join(map(as_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else repr(value)


def _whole(note: Note) -> str:
    """Return the whole of a note: a line for each thing that is said of it, then its content."""
    about: Mapping[str, object] = {
        "type": note.type,
        "tags": ", ".join(note.tags),
        "created": _time(note.created),
        "until": ""
        if note.until is None
        else f"{_time(note.until)}, superseded by {(note.superseded_by or '')[:8]}",
        "updated": _time(note.updated) if note.version > 1 else "",
        "version": note.version if note.version > 1 else "",
        "source": note.source,
        "thread": note.thread,
        "position": note.position,
        "metadata": note.metadata or "",
        "quality": f"{note.quality:.2f}",
        "links": ", ".join(f"{link.kind} {link.hash[:8]}" for link in note.links),
    }
    lines = [f"{name}: {said}" for name, said in about.items() if said not in ("", None)]
    return "\n".join([f"note {note.hash[:8]}", *lines, "", note.content])


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g}"


FindingKind: TypeAlias = Literal[
    "duplicate",
    "near_duplicate",
    "contradiction",
    "stale",
    "secret",
    "injection",
    "unused",
    "junk",
]
ProposedChange: TypeAlias = Literal["merge", "supersede", "archive"]

CHANGES: Final[Mapping[FindingKind, ProposedChange]] = {
    "duplicate": "merge",
    "near_duplicate": "merge",
    "contradiction": "supersede",
    "stale": "archive",
    "secret": "archive",
    "injection": "archive",
    "unused": "archive",
    "junk": "archive",
}


class AuditFinding(NamedTuple):
    """One thing that is wrong, and what could be done about it."""

    id: str
    """What `apply` takes: the kind and the notes, as `stale:1a2b3c4d:5e6f7a8b`."""

    kind: FindingKind
    hashes: tuple[str, ...]
    """The notes; of several, the one that stays or holds comes first."""

    evidence: str
    change: ProposedChange
    """`merge`: the first stays, the others are deleted. `supersede`: the first holds, the other no
    longer does. `archive`: it is no longer found, and can still be had by its hash."""

    def __repr__(self) -> str:
        return f"{self.id}: {self.evidence} ({self.change})"


class AuditReport(NamedTuple):
    """What an audit found; nothing was changed unless it says so."""

    notes: int
    counts: Mapping[str, int]
    """Of each kind, how many were found."""

    findings: tuple[AuditFinding, ...]
    """The first of each kind; `limit` says how many."""

    applied: int = 0
    undo: str | None = None
    """The id by which `memory.undo` reverses what was merged and archived."""

    def __repr__(self) -> str:
        found = ", ".join(f"{count} {kind}" for kind, count in self.counts.items() if count)
        head = f"{count(self.notes, 'note')}: {found or 'nothing wrong'}"
        done = f"{count(self.applied, 'change')} applied" if self.applied else ""
        back = f"; undo with {self.undo!r}" if self.undo else ""
        return "\n".join([head, *map(repr, self.findings), *([done + back] if done else [])])


def finding_id(kind: FindingKind, hashes: tuple[str, ...]) -> str:
    """Return what names a finding, whenever it is found."""
    return ":".join((kind, *hashes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. It is never edited, and never deleted."""

    id: str
    type: str
    content: str = ""
    outcome: str | None = None
    duration_ms: float | None = None
    session_id: str | None = None
    """The conversation or run in which it happened."""

    metadata: JsonObject = field(default_factory=dict)
    at: float
    """In seconds since 1970."""


class CompactEvent(NamedTuple):
    """An event in one line; `get_event(id)` returns the whole of it."""

    id: str
    event_type: str
    preview: str
    outcome: str | None
    duration_ms: float | None
    session_id: str | None
    at: float

    def __repr__(self) -> str:
        moment = datetime.fromtimestamp(self.at).astimezone()
        outcome = f" -> {self.outcome}" if self.outcome else ""
        took = f" in {self.duration_ms:,.0f} ms" if self.duration_ms is not None else ""
        session = f" [{self.session_id}]" if self.session_id else ""
        said = f": {self.preview}" if self.preview else ""
        return f"{self.id} {moment:%Y-%m-%d %H:%M} {self.event_type}{outcome}{took}{session}{said}"


class CompactEvents(NamedTuple):
    """The latest events, newest first; `total` counts all there are."""

    events: tuple[CompactEvent, ...]
    total: int

    def __repr__(self) -> str:
        if not self.total:
            return "No events."
        return "\n".join(
            [f"{len(self.events)} of {count(self.total, 'event')}:", *map(repr, self.events)]
        )
