"""Calendar arithmetic for time in words: days, weeks, months and hours around a moment.

Days, weeks and months go by the clock on the wall, so a day of 23 hours is one day. Seconds,
minutes and hours are elapsed time. Moments of one time zone are compared by `timestamp()`: Python
compares them by what their clocks show, and that runs backwards once a year.
"""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_ELAPSED = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SMALLER = {
    "minute": ("second", 60),
    "hour": ("minute", 60),
    "day": ("hour", 24),
    "week": ("day", 7),
    "month": ("day", 30),
    "quarter": ("month", 3),
    "year": ("month", 12),
}
UNITS = frozenset({*_ELAPSED, *_DAYS, *_MONTHS})

# How far from the moment it names "N units ago" reaches, on each side.
_SIDE_ELAPSED = {
    "second": timedelta(seconds=30),
    "minute": timedelta(minutes=5),
    "hour": timedelta(minutes=30),
}
_SIDE_DAYS = {"day": 0, "week": 3, "month": 15, "quarter": 45, "year": 182}

_PARTS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 29)}
PARTS_OF_DAY = frozenset(_PARTS)
_AROUND = timedelta(minutes=30)
_INSTANT = timedelta(microseconds=1)
_LEAP_YEARS = 8


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From `start` to before `end`; `at` is the moment that was named, if it was one."""

    start: datetime
    end: datetime
    at: datetime | None = None

    @property
    def begin(self) -> datetime:
        """Where it begins, as one end of a longer range."""
        return self.at or self.start

    @property
    def finish(self) -> datetime:
        """Where it ends, as one end of a longer range."""
        return self.at or self.end


def earliest(now: datetime) -> datetime:
    """Return what stands for the beginning of time."""
    return datetime(1, 1, 2, tzinfo=now.tzinfo)


def is_before(one: datetime, other: datetime) -> bool:
    """Tell whether `one` comes first, by elapsed time."""
    return one.timestamp() < other.timestamp()


def add_elapsed(moment: datetime, elapsed: timedelta) -> datetime:
    """Return the moment after so much real time."""
    return (moment.astimezone(UTC) + elapsed).astimezone(moment.tzinfo)


def add_days(moment: datetime, count: int) -> datetime:
    """Return the same time of another day."""
    return moment.replace(fold=0) + timedelta(days=count)


def add_months(moment: datetime, count: int) -> datetime:
    """Return the same day of another month, or its last day if it is shorter."""
    years, month = divmod(moment.month - 1 + count, 12)
    year = moment.year + years
    # Raises ValueError beyond the calendar, where `monthrange` may raise something else.
    first = moment.replace(year=year, month=month + 1, day=1, fold=0)
    return first.replace(day=min(moment.day, calendar.monthrange(year, month + 1)[1]))


def midnight(moment: datetime) -> datetime:
    """Return the beginning of the day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def days_from(start: datetime, count: int) -> TimeSpan:
    """Return so many whole days, from the day of `start` on."""
    first = midnight(start)
    return TimeSpan(first, add_days(first, count))


def months_from(start: datetime, count: int) -> TimeSpan:
    """Return so many whole months, from the month of `start` on."""
    first = midnight(start).replace(day=1)
    return TimeSpan(first, add_months(first, count))


def unit_around(moment: datetime, unit: str, *, week_start: int) -> TimeSpan:
    """Return the calendar week, month, quarter or year that holds `moment`."""
    if unit == "week":
        return days_from(add_days(moment, -((moment.weekday() - week_start) % 7)), 7)
    months = _MONTHS[unit]
    return months_from(
        moment.replace(day=1, month=moment.month - (moment.month - 1) % months), months
    )


def unit_before(now: datetime, unit: str, count: int, *, week_start: int) -> TimeSpan:
    """Return the calendar unit that lies `count` units before the present one."""
    first = unit_around(now, unit, week_start=week_start).start
    return unit_around(back(first, unit, count), unit, week_start=week_start)


def back(moment: datetime, unit: str, count: int) -> datetime:
    """Return the moment so many units earlier."""
    if unit in _ELAPSED:
        return add_elapsed(moment, -count * _ELAPSED[unit])
    if unit in _DAYS:
        return add_days(moment, -count * _DAYS[unit])
    return add_months(moment, -count * _MONTHS[unit])


def in_whole(unit: str, count: float) -> tuple[str, int]:
    """Return the same length in a unit that it is a whole number of: 18 months for 1.5 years."""
    if count == int(count) or unit not in _SMALLER:
        return unit, int(count)
    smaller, size = _SMALLER[unit]
    return smaller, round(count * size)


def around(moment: datetime, unit: str) -> TimeSpan:
    """Return what somebody means who names `moment` by a number of units: half a unit each way."""
    if unit in _ELAPSED:
        side = _SIDE_ELAPSED[unit]
        return TimeSpan(add_elapsed(moment, -side), add_elapsed(moment, side), moment)
    side_days = _SIDE_DAYS[unit]
    first = midnight(moment)
    at = first if side_days else None
    return TimeSpan(add_days(first, -side_days), add_days(first, side_days + 1), at)


def until_now(start: datetime, now: datetime) -> TimeSpan:
    """Return the time from `start` on, with the present moment in it."""
    return TimeSpan(start, add_elapsed(now, _INSTANT))


def part_of_day(day: datetime, part: str) -> TimeSpan:
    """Return the morning (midnight to noon), afternoon, evening, or the night that follows."""
    first, last = (_hour(midnight(day), hour) for hour in _PARTS[part])
    return TimeSpan(first, last)


def _hour(day: datetime, hour: int) -> datetime:
    return add_days(day, hour // 24).replace(hour=hour % 24)


def clock(day: datetime, hour: int, minute: int) -> TimeSpan:
    """Return the hour around a time of day."""
    at = midnight(day).replace(hour=hour, minute=minute)
    return TimeSpan(add_elapsed(at, -_AROUND), add_elapsed(at, _AROUND), at)


def clock_within(span: TimeSpan, hour: int, minute: int) -> TimeSpan:
    """Return the hour around a time of day, on the day of `span` on which it falls into it."""
    found = clock(span.start, hour, minute)
    if is_before(found.begin, span.start):
        later = clock(add_days(span.start, 1), hour, minute)
        return later if is_before(later.begin, span.end) else found
    return found


def third(span: TimeSpan, number: int) -> TimeSpan:
    """Return the first, second or last third, in whole days; the last takes what is left over.

    Raises:
        ValueError: It is shorter than three days.
    """
    days = (span.end.date() - span.start.date()).days
    size = days // 3
    if not size:
        raise ValueError("too short to have thirds")
    first = add_days(span.start, number * size)
    return TimeSpan(first, span.end if number == 2 else add_days(first, size))


def half(span: TimeSpan, is_first: bool) -> TimeSpan:
    """Return the first or the second half, in whole days."""
    middle = add_days(span.start, (span.end.date() - span.start.date()).days // 2)
    return TimeSpan(span.start, middle) if is_first else TimeSpan(middle, span.end)


def latest_weekday(bound: datetime, weekday: int) -> TimeSpan:
    """Return the last such day before the day of `bound`."""
    return days_from(add_days(bound, -((bound.weekday() - weekday - 1) % 7 + 1)), 1)


def weekday_in(week: TimeSpan, weekday: int) -> TimeSpan:
    """Return that day of a week."""
    return days_from(add_days(week.start, (weekday - week.start.weekday()) % 7), 1)


def latest_month(bound: datetime, month: int, count: int = 1) -> TimeSpan:
    """Return the last months, from that month on, that have begun by `bound`."""
    year = bound.year - (month > bound.month)
    return months_from(bound.replace(year=year, month=month, day=1), count)


def latest_day(bound: datetime, month: int, day: int) -> TimeSpan:
    """Return the last day of that date that has begun by `bound`.

    Raises:
        ValueError: No month of that name has so many days.
    """
    first = latest_month(bound, month).start
    for years in range(_LEAP_YEARS + 1):
        year = first.year - years
        if day <= calendar.monthrange(year, month)[1]:
            found = first.replace(year=year, day=day)
            if not is_before(bound, found):
                return days_from(found, 1)
    raise ValueError(f"month {month} has no day {day}")


def latest_monthday(bound: datetime, day: int) -> TimeSpan:
    """Return the last day of that number that has begun by `bound`."""
    this = midnight(bound).replace(day=1)
    for first in (add_months(this, -months) for months in range(4)):
        if day <= calendar.monthrange(first.year, first.month)[1]:
            found = first.replace(day=day)
            if not is_before(bound, found):
                return days_from(found, 1)
    raise ValueError(f"no month has a day {day}")


def weekend_around(now: datetime, *, back_by: int) -> TimeSpan:
    """Return the weekend that began last, or one `back_by` weeks earlier."""
    saturday = add_days(now, -((now.weekday() - 5) % 7) - 7 * back_by)
    return days_from(saturday, 2)


_TOKEN = re.compile(
    r"""
    [AaPp]\.[Mm]\b\.?                       # a.m.
    | [^\W\d_]\w*(?:['\u2019][^\W\d_]+)?    # a word, with its possessive
    | \d[\w.:/+\u2013-]*                    # a number, a date, a time, a range of them
    """,
    re.VERBOSE,
)
_MERIDIEM = re.compile(r"[ap]\.m\.?")
_MAX = 40
_GLUE_BEFORE = "/\\@#$€£._=&"
_GLUE_AFTER = "/\\@_="
_DASHES = {"-", "\u2013", "\u2014"}
_TRAILING = ".:/+\u2013-"

SPACE, COMMA, DASH, OTHER = " ", ",", "-", "?"


@dataclass(frozen=True, slots=True)
class Token:
    """A word in lower case without its possessive, or a numeral as it stands.

    What is part of a path, an address, an identifier or a price has no word.
    """

    word: str
    start: int
    end: int
    join: str
    """What stands before it: SPACE, COMMA, DASH or OTHER."""
    is_capital: bool = False
    is_possessive: bool = False


def tokenize(text: str) -> list[Token]:
    """Return the words and numerals of `text`, in order."""
    tokens: list[Token] = []
    last = 0
    for match in _TOKEN.finditer(text):
        token = _token(text, match, text[last : match.start()])
        tokens.append(token)
        last = token.end
    return tokens


def _token(text: str, match: re.Match[str], gap: str) -> Token:
    written, end = match.group(), match.end()
    if written[0].isdecimal():
        written = written.rstrip(_TRAILING)
        end = match.start() + len(written)
    if len(written) > _MAX or _is_glued(text, gap, end):
        return Token("", match.start(), end, OTHER)
    word = written.lower().replace("\u2019", "'")
    if _MERIDIEM.fullmatch(word):
        word = word.replace(".", "")
    return Token(
        word=word.removesuffix("'s"),
        start=match.start(),
        end=end,
        join=_join(gap),
        is_capital=written[0].isupper(),
        is_possessive=word.endswith("'s"),
    )


def _is_glued(text: str, gap: str, end: int) -> bool:
    after = text[end : end + 2]
    is_continued = after[:1] == "." and after[1:].isalnum()
    return gap[-1:] in tuple(_GLUE_BEFORE) or after[:1] in tuple(_GLUE_AFTER) or is_continued


def _join(gap: str) -> str:
    between = gap.strip()
    if between in _DASHES:
        return DASH
    return {"": SPACE, ",": COMMA}.get(between, OTHER)
