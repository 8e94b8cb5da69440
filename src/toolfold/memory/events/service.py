"""The verbs of events."""

import secrets
import time
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Final

from toolfold.errors import BadInput
from toolfold.jsontypes import Json
from toolfold.memory.inputs import (
    Moment,
    check_limit,
    check_moment,
    clean_metadata,
    clean_name,
    clean_said,
)
from toolfold.memory.models import CompactEvent, CompactEvents, Event, preview
from toolfold.memory.registry import verb
from toolfold.memory.store import EventFilter, EventStore
from toolfold.memory.when.phrases import Calendar

DEFAULT_EVENTS: Final = 20
_ID_BYTES: Final = 6
_MAX_DURATION_MS: Final = 1e11  # three years


def new_id() -> str:
    """Return a name that no event has: nobody makes millions of them in one namespace."""
    return secrets.token_hex(_ID_BYTES)


class Events:
    """What happened in one namespace, in the order in which it did.

    An event is never edited. Every verb raises `BadInput` for a value that cannot be used, having
    changed nothing, and `StoreError` when the store does not answer.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
        zone: tzinfo | None = None,
        week_start: int = 0,
    ) -> None:
        self._store = store
        self._namespace = clean_name(namespace, "namespace")
        self._calendar = Calendar(clock=clock, zone=zone, week_start=week_start)

    @verb("changes", "POST /events", wrap="id", status=201, is_tool=True)
    async def record_event(
        self,
        event_type: str,
        content: str = "",
        outcome: str | None = None,
        duration_ms: float | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> str:
        """Record an event that happened now, and return its id.

        `event_type` is a word or two, such as "deploy" or "test run"; `content` has the details,
        `outcome` the result, such as "success" or "failure". The event is on disk when this
        returns, and cannot be changed or deleted.
        """
        event = Event(
            id=new_id(),
            type=clean_name(event_type, "event type"),
            content=clean_said(content, "The content of an event"),
            outcome=None if outcome is None else clean_name(outcome, "outcome"),
            duration_ms=_check_duration(duration_ms),
            session_id=None if session_id is None else clean_name(session_id, "session"),
            metadata=clean_metadata(metadata),
            at=self._calendar.clock(),
        )
        await self._store.record(self._namespace, [event])
        return event.id

    @verb("reads", "GET /events", is_tool=True, is_command=False)
    async def recall_events(
        self,
        session_id: str | None = None,
        event_type: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = DEFAULT_EVENTS,
    ) -> CompactEvents:
        """Return events, newest first; `total` counts all that pass the filters.

        `since` (included) and `until` (excluded) are times as in `search`, or words such as
        "yesterday", "last week", "3 days ago", which stand for that whole period.
        """
        wanted = EventFilter(
            session_id=None if session_id is None else clean_name(session_id, "session"),
            type=None if event_type is None else clean_name(event_type, "event type"),
            since=self._moment(since, "since"),
            until=self._moment(until, "until"),
        )
        found = await self._store.latest(self._namespace, wanted, limit=check_limit(limit))
        return CompactEvents(tuple(map(_compact, found.events)), found.total)

    @verb("reads", "GET /events/{id}")
    async def get_event(self, id: str) -> Event:
        """Return a whole event by its id.

        Raises:
            NotFound: There is none.
        """
        return await self._store.get_event(self._namespace, clean_name(id, "id of an event"))

    def _moment(self, value: Moment | None, what: str) -> float | None:
        """Return a time; of one in words its beginning, or its end where it is the last moment."""
        if not isinstance(value, str):
            return check_moment(value, what, self._calendar.zone)
        try:
            return check_moment(value, what, self._calendar.zone)
        except BadInput:
            found = self._calendar.find(value)
            if found is None or found.rest:
                raise
        span = found.range
        return (span.end if what == "until" else span.start).timestamp()


def _compact(event: Event) -> CompactEvent:
    return CompactEvent(
        id=event.id,
        event_type=event.type,
        preview=preview(event.content),
        outcome=event.outcome,
        duration_ms=event.duration_ms,
        session_id=event.session_id,
        at=event.at,
    )


def _check_duration(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"`duration_ms` is a number of milliseconds, not {type(value).__name__}.")
    if not 0 <= value <= _MAX_DURATION_MS:
        raise BadInput(f"`duration_ms` is a number of milliseconds from 0 on, not {value!r}.")
    return float(value)
