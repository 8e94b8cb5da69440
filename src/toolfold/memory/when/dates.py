"""Read dates: `3 May 2026`, `in March`, `on Tuesday`; and those told from now: `last month`."""

import re
from datetime import datetime, timedelta

from toolfold.memory.when.reader import (
    FUNCTION_WORDS,
    ORDINALS,
    PERSONS,
    Match,
    Resolve,
    Words,
    amounts,
    day_number,
    is_count,
    is_weak_month,
    month,
    unit,
    weekday,
    year,
)
from toolfold.memory.when.spans import (
    COMMA,
    PARTS_OF_DAY,
    SPACE,
    TimeSpan,
    add_days,
    add_elapsed,
    around,
    back,
    days_from,
    earliest,
    in_whole,
    is_before,
    latest_day,
    latest_month,
    latest_monthday,
    latest_weekday,
    months_from,
    part_of_day,
    unit_around,
    unit_before,
    until_now,
    weekday_in,
    weekend_around,
)

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


VAGUE_WORDS = {"recently", "lately"}
_RECENT_DAYS = 14
_JUST_NOW = timedelta(minutes=10)
_ROLLING = {"in", "within", "over", "during", "for", "throughout"}
LAST = {"last", "previous", "past"}
CALENDAR_UNITS = {"week", "month", "quarter", "year"}
_ELAPSED_UNITS = {"second", "minute", "hour"}
VAGUELY = {"about", "around", "roughly", "approximately", "nearly", "almost", "some"}


def fixed(words: Words, i: int) -> Match | None:
    """Read `today`, `yesterday`, `tonight`, `the other day`, `recently`."""
    now = words.now
    days_back = {"today": 0, "yesterday": 1}.get(words.word(i))
    if days_back is not None:
        return Match(i + 1, "day", lambda _bound: days_from(add_days(now, -days_back), 1))
    if end := words.phrase(i, "day before yesterday"):
        return Match(end, "day", lambda _bound: days_from(add_days(now, -2), 1))
    if words.word(i) == "tonight":
        return Match(i + 1, "part", lambda _bound: part_of_day(now, "night"))
    if end := words.phrase(i, "other day"):
        return Match(end, "period", lambda _bound: days_from(add_days(now, -7), 7))
    return _lately(words, i)


def _lately(words: Words, i: int) -> Match | None:
    now = words.now
    if words.word(i) in VAGUE_WORDS:
        return _until_now(words, i + 1, add_days(now, -_RECENT_DAYS))
    if end := words.phrase(i, "just now", "a moment ago", "moments ago"):
        return _until_now(words, end, add_elapsed(now, -_JUST_NOW))
    return None


def _until_now(words: Words, end: int, start: datetime) -> Match:
    return Match(end, "period", lambda _bound: until_now(start, words.now))


def ago(words: Words, i: int) -> Match | None:
    """Read `two weeks ago`, `about an hour ago`, `more than a year ago`, `less than a week ago`."""
    i = i + 1 if words.word(i) in VAGUELY else i
    more = words.phrase(i, "more than", "over")
    less = words.phrase(i, "less than", "under")
    parts = list(amounts(words, more or less or i))
    if not parts or words.word(parts[-1].end) not in {"ago", "back"}:
        return None
    nearest = farthest = words.now
    name = ""
    for part in parts:
        name, fewest = in_whole(part.unit, part.fewest)
        nearest = back(nearest, name, fewest)
        farthest = back(farthest, *in_whole(part.unit, part.most))
    end = parts[-1].end + 1
    if more:
        return Match(end, "period", lambda _bound: TimeSpan(earliest(words.now), nearest))
    if less:
        return _until_now(words, end, farthest)
    return _around_ago(words, end, (farthest, nearest), name)


def _around_ago(words: Words, end: int, ends: tuple[datetime, datetime], name: str) -> Match:
    first, last = (around(one, name) for one in ends)
    if today := words.phrase(end, "today"):
        return Match(today, "day", lambda _bound: days_from(ends[1], 1))
    now = until_now(words.now, words.now).end
    finish = now if name in _ELAPSED_UNITS and is_before(now, last.end) else last.end
    kind = "day" if name == "day" and ends[0] == ends[1] else "period"
    return Match(end, kind, lambda _bound: TimeSpan(first.start, finish, first.at))


def relative(words: Words, i: int) -> Match | None:
    """Read what begins with `last`, `past`, `previous`, `this` or `these`."""
    word = words.word(i)
    if word in {"this", "these"} and words.word(i + 1) in LAST:
        return _rolling(words, i + 2, is_singular_fine=True) or _last_weekday(words, i + 2)
    if word in {"this", "these"}:
        return _this(words, i + 1)
    if word not in LAST:
        return None
    is_rolling = word == "past" or _is_within(words, i)
    rolled = _rolling(words, i + 1, is_singular_fine=is_rolling)
    return rolled or _last(words, i + 1)


def _is_within(words: Words, i: int) -> bool:
    return words.before(i) == "the" and i - 2 >= words.begin and words.before(i - 1) in _ROLLING


def _rolling(words: Words, i: int, *, is_singular_fine: bool) -> Match | None:
    """Read `3 days`, `few weeks`, `hour`, all up to now.

    `week` means that too after `past` or `in the last`. `Last minute` and `last day` do not.
    """
    single = unit(words.word(i))
    if single:
        is_fine = is_singular_fine or single == "hour"
        if not is_fine or words.word(i) != single or words.follows(i + 1) == "of":
            return None
        return _until_now(words, i + 1, back(words.now, single, 1))
    parts = list(amounts(words, i))
    if len(parts) != 1 or words.follows(parts[0].end) == "of":
        return None
    start = back(words.now, *in_whole(parts[0].unit, parts[0].most))
    return _until_now(words, parts[0].end, start)


def _last(words: Words, i: int) -> Match | None:
    word, now = words.word(i), words.now
    if word in {"night", "evening"}:
        yesterday = add_days(now, -1)
        return Match(i + 1, "part", lambda _bound: part_of_day(yesterday, word))
    if word == "weekend":
        is_now = now.weekday() >= 5
        return Match(i + 1, "period", lambda _bound: weekend_around(now, back_by=is_now))
    if word in CALENDAR_UNITS and words.follows(i + 1) != "of":
        return calendar_unit(words, i, 1)
    if (number := month(words, i)) is not None and words.follows(i + 1) not in {"of", "on"}:
        before = unit_around(now, "month", week_start=0).start - timedelta(days=1)
        return Match(i + 1, "period", lambda _bound: latest_month(before, number))
    return _last_weekday(words, i)


def calendar_unit(words: Words, i: int, count: int) -> Match:
    """Return a calendar unit; of a week perhaps only one day."""
    name = words.word(i)
    k = words.phrase(i + 1, "on") or i + 1
    number = weekday(words, k)
    if name == "week" and number is not None:
        return Match(k + 1, "day", in_week(words, count, number))
    found = unit_before(words.now, name, count, week_start=words.week_start)
    return Match(i + 1, "period", lambda _bound: found)


def _last_weekday(words: Words, i: int) -> Match | None:
    number = weekday(words, i)
    if number is None:
        return None
    return Match(i + 1, "day", lambda _bound: latest_weekday(words.now, number))


def _this(words: Words, i: int) -> Match | None:
    word, now = words.word(i), words.now
    if word in PARTS_OF_DAY:
        return Match(i + 1, "part", lambda _bound: part_of_day(now, word))
    if word == "weekend":
        ahead = (5 - now.weekday()) % 7 if now.weekday() < 5 else 0
        return Match(
            i + 1, "period", lambda _bound: weekend_around(add_days(now, ahead), back_by=0)
        )
    if word in CALENDAR_UNITS:
        return calendar_unit(words, i, 0)
    if (number := weekday(words, i)) is not None:
        return Match(i + 1, "day", in_week(words, 0, number))
    return _this_month(words, i) or _rolling(words, i, is_singular_fine=False)


def _this_month(words: Words, i: int) -> Match | None:
    number = month(words, i)
    if number is None or not words.tokens[i].is_capital:
        return None
    first = unit_around(words.now, "year", week_start=0).start.replace(month=number)
    return Match(i + 1, "period", lambda _bound: months_from(first, 1))


def before_last(words: Words, i: int) -> Match | None:
    """Read `the week before last`."""
    name = words.word(i)
    end = words.phrase(i + 1, "before last")
    if not end or name not in {*CALENDAR_UNITS, "weekend"}:
        return None
    if name == "weekend":
        back_by = 1 + (words.now.weekday() >= 5)
        return Match(end, "period", lambda _bound: weekend_around(words.now, back_by=back_by))
    found = unit_before(words.now, name, 2, week_start=words.week_start)
    return Match(end, "period", lambda _bound: found)


def weekend(words: Words, i: int) -> Match | None:
    """Read `the weekend`, which is the last that has begun."""
    # What is planned "for the weekend" is planned for the next one.
    if words.word(i) != "weekend" or words.before(i) != "the" or words.before(i - 1) == "for":
        return None
    return Match(i + 1, "period", lambda _bound: weekend_around(words.now, back_by=0))
