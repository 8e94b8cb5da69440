"""How times in words are understood here and now."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from toolfold.memory.when.phrases import TimeFound, find_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The clock, the zone and the first day of the week that words are told from."""

    clock: Callable[[], float]
    """Seconds since 1970."""

    zone: tzinfo | None
    """None for that of the system."""

    week_start: int = 0
    """0 for Monday."""

    def find(self, text: str) -> TimeFound | None:
        """Return the time that a text names, or None."""
        now = datetime.fromtimestamp(self.clock(), self.zone).astimezone(self.zone)
        return find_time(text, now=now, week_start=self.week_start)

    def span(self, text: str) -> tuple[float, float] | None:
        """Return the beginning and the end of that time."""
        found = self.find(text)
        if found is None:
            return None
        return found.range.start.timestamp(), found.range.end.timestamp()
