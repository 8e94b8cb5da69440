"""Find time in words in a query: `what did we decide last week about auth`.

What is ambiguous is read the same way each time, and relative to the `now` that is passed in:

- `last week`, `last month` are calendar units; `the past week`, `in the last month` and
  `the last 7 days` reach from then to now.
- `3 days ago` is that day. `Two weeks ago`, `a month ago` reach half a unit to each side of it.
- `On Tuesday`, `in March`, `3 May` are the last that have begun; a weekday is never today.
- `Since` and `until` include what they name, `before` and `after` do not.
- A time of day is the hour around it, or exact as one end of a range.
- `5/3/2026` and `3.5.2026` are both 3 May: slashes put the month first, dots the day.
- What is yet to come, `tomorrow` or `next week`, is not found: nothing is remembered from then.

Of several times in a text the first with a year counts, else the first, and `recently` last.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from toolfold.memory.when.dates import VAGUE_WORDS
from toolfold.memory.when.ranges import phrase
from toolfold.memory.when.reader import MONTHS, WEEKDAYS, Words
from toolfold.memory.when.spans import (
    TimeSpan,
    Token,
    add_days,
    add_months,
    earliest,
    is_before,
    midnight,
    tokenize,
)

_MAX_CHARS = 4_000
_LISTING = frozenset({"and", "or", ",", ", and", ", or", "&", "vs", "vs.", "versus"})
# Not by strftime, which speaks the language of the machine.
_MONTHS = [name.title() for name in MONTHS if len(name) > 4 or name in {"june", "july", "may"}]
_WEEKDAYS = [name.title() for name in WEEKDAYS if name.endswith("day")]


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` to before `end`, both in one time zone. Compare them by `timestamp()`."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFound:
    """A time that a text names."""

    range: TimeRange
    span: tuple[int, int]
    """Where its words begin and end in the text."""
    rest: str
    """The text without them."""


def find_time(text: str, *, now: datetime, week_start: int = 0) -> TimeFound | None:
    """Return the past or present time that `text` names, or None.

    Of several that are listed ("yesterday and today") it is from the first to the last.

    `now` must know its time zone, in which words are understood; with a `ZoneInfo` days are right
    across changes of the clock. Weeks begin on `week_start`, 0 for Monday. Never raises. Reads the
    first 4,000 characters, in time proportional to them: what is longer is no question.
    """
    tokens = tokenize(text[:_MAX_CHARS])
    best: TimeFound | None = None
    best_rank = 0
    for first, last, span in _joined(text, tokens, _times(tokens, now, week_start)):
        if (rank := _rank(tokens[first:last])) > best_rank:
            start, stop = tokens[first].start, tokens[last - 1].end
            rest = _without(text, start, stop)
            best_rank = rank
            best = TimeFound(range=TimeRange(span.start, span.end), span=(start, stop), rest=rest)
    return best


def _times(
    tokens: Sequence[Token], now: datetime, week_start: int
) -> Iterator[tuple[int, int, TimeSpan]]:
    """Yield every time that is named, with the tokens that name it."""
    i = 0
    while i < len(tokens):
        try:
            found = phrase(Words(tokens, now=now, week_start=week_start, begin=i))
        except (ValueError, OverflowError):  # `31 June`, `9999 years ago`: beyond the calendar
            found = None
        if found is not None and found[1] is not None:
            yield i, found[0], found[1]
        i = found[0] if found is not None else i + 1


def _joined(
    text: str, tokens: Sequence[Token], times: Iterable[tuple[int, int, TimeSpan]]
) -> Iterator[tuple[int, int, TimeSpan]]:
    """Yield times, those that are listed as one."""
    held: tuple[int, int, TimeSpan] | None = None
    for first, last, span in times:
        if held is None:
            held = first, last, span
        elif _are_listed(text, tokens[held[0] : held[1]], tokens[first:last]):
            held = held[0], last, _around(held[2], span)
        else:
            yield held
            held = first, last, span
    if held is not None:
        yield held


def _are_listed(text: str, one: Sequence[Token], other: Sequence[Token]) -> bool:
    between = text[one[-1].end : other[0].start].strip().lower()
    return between in _LISTING and min(_rank(one), _rank(other)) > 1


def _around(one: TimeSpan, other: TimeSpan) -> TimeSpan:
    start = min(one.start, other.start, key=datetime.timestamp)
    return TimeSpan(start, max(one.end, other.end, key=datetime.timestamp))


def _rank(tokens: Sequence[Token]) -> int:
    """Return how telling these words are: with a year, without, or but `recently`."""
    words = {token.word for token in tokens}
    if words & VAGUE_WORDS:
        return 1
    return 3 if any(word[:4].isdecimal() for word in words if len(word) >= 4) else 2


def _without(text: str, start: int, stop: int) -> str:
    before, after = text[:start], text[stop:]
    if not after[:1].isalnum():
        before = before.rstrip()
    return (before + after).strip()


def describe(found: TimeRange) -> str:
    """Return a range in words: `in March 2026`, `from 3 May 2026 to 7 May 2026`."""
    start, end = found.start, found.end
    if start == earliest(start):
        return f"before {_moment(end)}"
    if start == midnight(start) and end == midnight(end):
        return _days(start, end)
    if not is_before(add_days(midnight(start), 1), end):
        until = f"{end:%H:%M}" if end != midnight(end) else "24:00"
        return f"on {_WEEKDAYS[start.weekday()]} {_day(start)}, {start:%H:%M} to {until}"
    return f"from {_moment(start)} to {_moment(end)}"


def _days(start: datetime, end: datetime) -> str:
    if start.day == 1 and end == add_months(start, 12) and start.month == 1:
        return f"in {start.year}"
    if start.day == 1 and end == add_months(start, 1):
        return f"in {_MONTHS[start.month - 1]} {start.year}"
    if end == add_days(start, 1):
        return f"on {_WEEKDAYS[start.weekday()]} {_day(start)}"
    return f"from {_day(start)} to {_day(add_days(end, -1))}"


def _moment(moment: datetime) -> str:
    return _day(moment) if moment == midnight(moment) else f"{_day(moment)}, {moment:%H:%M}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


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
