"""The EventStore protocol: what keeps events, whichever database it is.

Whatever a method has returned from is kept: it survives the death of the process and of the
machine. Namespaces do not see each other's events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from toolfold.memory.events.models import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events come into question. What is not said does not matter."""

    session_id: str | None = None
    type: str | None = None
    since: float | None = None
    """At that time or later."""

    until: float | None = None
    """Earlier."""


class EventListing(NamedTuple):
    """Events in order, and how many there are beyond."""

    events: Sequence[Event]
    total: int


class EventStore(Protocol):
    """Keeps events. It has no way to change or to delete one.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then.
    """

    async def record(self, namespace: str, events: Sequence[Event]) -> int:
        """Keep events, all or none; return how many. One whose id is known is left as it was."""

    async def get_event(self, namespace: str, id: str) -> Event:
        """Return an event.

        Raises:
            NotFound: There is none of that id.
        """

    async def latest(
        self, namespace: str, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> EventListing:
        """Return events that pass a filter, newest first, of one moment the last recorded first."""
