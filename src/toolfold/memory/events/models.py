"""What happened, and the small forms in which it is shown. Standard library only."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from toolfold.jsontypes import JsonObject


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
        return "\n".join([f"{len(self.events)} of {self.total} events:", *map(repr, self.events)])
