"""Read dates: `3 May 2026`, `2026-05-03`, `in March`, `Q3 2025`, `on Tuesday`."""

import re
from datetime import datetime

from toolfold.memory.when.reader import (
    FUNCTION_WORDS,
    ORDINALS,
    PERSONS,
    Match,
    Resolve,
    Words,
    day_number,
    is_count,
    is_weak_month,
    month,
    weekday,
    year,
)
from toolfold.memory.when.spans import (
    TimeSpan,
    add_days,
    around,
    days_from,
    latest_day,
    latest_month,
    latest_monthday,
    latest_weekday,
    months_from,
    unit_before,
    weekday_in,
)
from toolfold.memory.when.tokens import COMMA, SPACE

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:t(\d\d):(\d\d)(?::\d\d(?:\.\d{1,9})?)?(z|[+-]\d\d:?\d\d)?)?"
)
_ISO_MONTH = re.compile(r"((?:19|20|21)\d\d)-(0[1-9]|1[0-2])")
_ISO_WEEK = re.compile(r"((?:19|20|21)\d\d)-?w(\d\d)")
_SLASHED = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,4})")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.((?:19|20|21)\d\d)")
_QUARTER = re.compile(r"([qh])([1-4])")
_YEARS = range(1900, 2200)


def date(words: Words, i: int) -> Match | None:
    """Read a day of the calendar, with the weekday before it or without."""
    if weekday(words, i) is not None:
        k = i + 2 if words.word(i + 1, SPACE + COMMA) == "the" else i + 1
        return _day_first(words, k) or _month_first(words, k)
    return numeric_date(words, i) or _day_first(words, i) or _month_first(words, i)


def numeric_date(words: Words, i: int) -> Match | None:
    """Read `2026-05-03`, `2026-05-03T10:00Z`, `2026-W18`, `5/3/2026` and `3.5.2026` (May both)."""
    word = words.word(i)
    if found := _ISO.fullmatch(word):
        return _iso(words, i, found)
    if (found := _DOTTED.fullmatch(word)) and words.before(i) not in {"version", "release"}:
        return _fixed_day(words, i + 1, int(found[3]), int(found[2]), int(found[1]))
    if found := _SLASHED.fullmatch(word):
        return _slashed(words, i, *map(int, found.groups()))
    if found := _ISO_WEEK.fullmatch(word):
        monday = datetime.fromisocalendar(int(found[1]), int(found[2]), 1).replace(
            tzinfo=words.now.tzinfo
        )
        return Match(i + 1, "period", lambda _bound: days_from(monday, 7))
    if (found := _ISO_MONTH.fullmatch(word)) and i != words.begin:
        first = datetime(int(found[1]), int(found[2]), 1, tzinfo=words.now.tzinfo)
        return Match(i + 1, "month", lambda _bound: months_from(first, 1))
    return None


def _iso(words: Words, i: int, found: re.Match[str]) -> Match | None:
    if found[4] is None or int(found[1]) not in _YEARS:
        return _fixed_day(words, i + 1, int(found[1]), int(found[2]), int(found[3]))
    try:
        at = datetime.fromisoformat(found[0].upper())
    except ValueError:
        return None
    zone = words.now.tzinfo
    at = at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)
    return Match(i + 1, "period", lambda _bound: clock_at(at))


def clock_at(at: datetime) -> TimeSpan:
    """Return the hour around a moment."""
    return TimeSpan(around(at, "hour").start, around(at, "hour").end, at)


def _slashed(words: Words, i: int, first: int, second: int, third: int) -> Match | None:
    if first in _YEARS:
        return _fixed_day(words, i + 1, first, second, third)
    if first > 12:
        first, second = second, first
    return _fixed_day(words, i + 1, third, first, second)


def _fixed_day(words: Words, end: int, year: int, month: int, day: int) -> Match | None:
    """Return the day, or nothing if the calendar has no such day."""
    if year not in _YEARS:
        return None
    try:
        start = datetime(year, month, day, tzinfo=words.now.tzinfo)
    except ValueError:
        return None
    return Match(end, "day", lambda _bound: days_from(start, 1))


def _day_first(words: Words, i: int) -> Match | None:
    """Read `3 May`, `the 3rd of May 2026`."""
    day = day_number(words, i, SPACE + COMMA)
    k = words.phrase(i + 1, "of") or i + 1
    number = month(words, k)
    if day is None or number is None:
        return None
    return _day_of_month(words, k + 1, number, day, first=i, month_at=k)


def _month_first(words: Words, i: int) -> Match | None:
    """Read `May 3`, `May 3rd, 2026`."""
    number = month(words, i, SPACE + COMMA)
    k = words.phrase(i + 1, "the") or i + 1
    day = day_number(words, k)
    if number is None or day is None or is_count(words, k + 1):
        return None
    return _day_of_month(words, k + 1, number, day, first=i, month_at=i)


def _day_of_month(
    words: Words, i: int, number: int, day: int, *, first: int, month_at: int
) -> Match | None:
    if (named := year(words, i, SPACE + COMMA)) is not None:
        return _fixed_day(words, i + 1, named, number, day)
    # Without a word before it, `3 may` may begin `3 may fail`.
    if is_weak_month(words, month_at) and words.begin == first:
        return None
    return Match(i, "day", lambda bound: latest_day(bound, number, day), "year")


def day_of_this_month(words: Words, i: int) -> Match | None:
    """Read `the 3rd` where the sentence or its part ends: else it counts something."""
    word = words.word(i)
    if not word.endswith(("st", "nd", "rd", "th")) or words.follows(i + 1):
        return None
    day = day_number(words, i)
    if day is None or words.before(i) != "the":
        return None
    return Match(i + 1, "weekday", lambda bound: latest_monthday(bound, day), "month")


def month_name(words: Words, i: int) -> Match | None:
    """Read `March 2025`, which stands alone, or `March`, which does not."""
    number = month(words, i)
    if number is None or words.before(i) == "the":
        return None
    k = words.phrase(i + 1, "of") or i + 1
    if (named := year(words, k, SPACE + COMMA)) is not None:
        first = datetime(named, number, 1, tzinfo=words.now.tzinfo)
        return Match(k + 1, "period", lambda _bound: months_from(first, 1))
    return Match(i + 1, "month", lambda bound: latest_month(bound, number), "year")


def is_person(words: Words, i: int) -> bool:
    """Tell whether the month before `i` may be a person who does what stands at `i`."""
    following = words.follows(i)
    is_name = words.tokens[i - 1].word in PERSONS
    return is_name and following != "" and following not in FUNCTION_WORDS


def year_name(words: Words, i: int) -> Match | None:
    """Read `2024`, unless it counts something, or `the year 2024`."""
    k = words.phrase(i, "year") or i
    named = year(words, k)
    if named is None or words.before(k) == "the" or is_count(words, k + 1):
        return None
    first = datetime(named, 1, 1, tzinfo=words.now.tzinfo)
    return Match(k + 1, "year", lambda _bound: months_from(first, 12))


def quarter(words: Words, i: int) -> Match | None:
    """Read `Q3`, `Q3 2025`, `2025 Q3`, `H1 2025`, `the third quarter of 2025`."""
    if (named := year(words, i)) is not None and (found := _QUARTER.fullmatch(words.word(i + 1))):
        return _months_of(words, i + 2, *_quarter_months(found), named)
    if found := _QUARTER.fullmatch(words.word(i)):
        k = words.phrase(i + 1, "of")
        return _months_of(words, k if year(words, k) else i + 1, *_quarter_months(found), None)
    place = ORDINALS.get(words.word(i))
    if place is not None and (k := words.phrase(i + 1, "quarter of")) and year(words, k):
        return _months_of(words, k, 3 * (place % 4) + 1, 3, None)
    return None


def _quarter_months(found: re.Match[str]) -> tuple[int, int]:
    """Return the first month and how many; there are but two halves."""
    length = 3 if found[1] == "q" else 6
    return length * (int(found[2]) - 1) + 1, length


def _months_of(words: Words, i: int, first: int, count: int, named: int | None) -> Match | None:
    if first > 12:
        return None
    end = i
    if named is None and (named := year(words, i, SPACE + COMMA)) is not None:
        end = i + 1
    if named is None:
        return Match(i, "month", lambda bound: latest_month(bound, first, count), "year")
    start = datetime(named, first, 1, tzinfo=words.now.tzinfo)
    return Match(end, "period", lambda _bound: months_from(start, count))


def week_of_month(words: Words, i: int) -> Match | None:
    """Read `the first week of March`, `the last week of March 2025`: seven days each."""
    place = ORDINALS.get(words.word(i))
    k = words.phrase(i + 1, "week of", "week in")
    whole = month_name(words, k) if place is not None and k else None
    if place is None or whole is None:
        return None

    def resolve(bound: datetime) -> TimeSpan:
        found = whole.resolve(bound)
        start = add_days(found.end, -7) if place < 0 else add_days(found.start, 7 * place)
        return days_from(start, 7)

    return Match(whole.end, "period", resolve, whole.cycle)


def weekday_name(words: Words, i: int) -> Match | None:
    """Read `Tuesday`, and `Tuesday of last week`."""
    number = weekday(words, i)
    if number is None or words.before(i) == "the" or words.follows(i + 1) == "next":
        return None
    k = words.phrase(i + 1, "of") or i + 1
    for text, weeks in (("last week", 1), ("this week", 0)):
        if end := words.phrase(k, text):
            return Match(end, "day", in_week(words, weeks, number))
    kind = "day" if words.tokens[i].is_possessive else "weekday"
    return Match(i + 1, kind, lambda bound: latest_weekday(bound, number), "week")


def in_week(words: Words, weeks: int, number: int) -> Resolve:
    """Return what finds the weekday in the week that lies so many weeks back."""
    week = unit_before(words.now, "week", weeks, week_start=words.week_start)
    return lambda _bound: weekday_in(week, number)
