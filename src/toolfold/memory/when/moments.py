"""Read what names one time, the telling ways and the plain: `mid-March`, `Monday at 3pm`."""

from collections.abc import Callable
from datetime import datetime

from toolfold.memory.when.dates import (
    CALENDAR_UNITS,
    LAST,
    VAGUELY,
    ago,
    before_last,
    calendar_unit,
    date,
    day_of_this_month,
    fixed,
    month_name,
    quarter,
    relative,
    week_of_month,
    weekday_name,
    weekend,
    year_name,
)
from toolfold.memory.when.reader import (
    Amount,
    Match,
    Resolve,
    TimeOfDay,
    Words,
    amounts,
    clock_time,
    is_name_or_number,
    weekday,
)
from toolfold.memory.when.spans import (
    COMMA,
    DASH,
    PARTS_OF_DAY,
    SPACE,
    TimeSpan,
    add_days,
    around,
    back,
    clock,
    clock_within,
    half,
    in_whole,
    is_before,
    latest_weekday,
    part_of_day,
    third,
    unit_around,
)

_EDGES = {"start": 0, "beginning": 0, "early": 0, "middle": 1, "mid": 1, "end": 2, "late": 2}
_ADJECTIVES = {"early", "mid", "late"}


def moment(words: Words, i: int) -> Match | None:
    """Read one time, the most telling reading first."""
    if i not in words.moments:
        words.moments[i] = _read_moment(words, i)
    return words.moments[i]


def _read_moment(words: Words, i: int) -> Match | None:
    k = words.phrase(i, "the") or i
    if not may_begin(words.word(k)):
        return None
    for rule in _RULES:
        if (found := rule(words, k)) is not None:
            return _with_time(words, found)
    return None


def _beside(words: Words, i: int) -> Match | None:
    """Read what is told from a day: `the week before 3 May`, `two days after 3 May`."""
    name, number = words.word(i), weekday(words, i)
    length = [] if name in CALENDAR_UNITS or number is not None else list(amounts(words, i))
    k = length[-1].end if length else i + 1
    if not (length or number is not None or name in {*CALENDAR_UNITS, "day"}):
        return None
    sign = {"before": -1, "after": 1}.get(words.word(k), 0)
    day = _day(words, k + 1) if sign or words.word(k) == "of" else None
    if day is None or day.kind != "day" or (not sign and name != "week"):
        return None
    if number is not None and sign:
        return Match(day.end, "period", _weekday_beside(day, number, sign), day.cycle)
    if length:
        return Match(day.end, "period", _length_beside(day, length, sign), day.cycle)

    def resolve(bound: datetime) -> TimeSpan:
        found = day.resolve(bound)
        if sign:
            return _next_to(found, name, sign)
        return unit_around(found.start, "week", week_start=words.week_start)

    return Match(day.end, "period", resolve, day.cycle)


def _weekday_beside(day: Match, number: int, sign: int) -> Resolve:
    def resolve(bound: datetime) -> TimeSpan:
        found = day.resolve(bound)
        return latest_weekday(found.start if sign < 0 else add_days(found.end, 7), number)

    return resolve


def _length_beside(day: Match, length: list[Amount], sign: int) -> Resolve:
    def resolve(bound: datetime) -> TimeSpan:
        there = day.resolve(bound).start
        for part in length:
            there = back(there, *in_whole(part.unit, -sign * part.fewest))
        return around(there, length[-1].unit)

    return resolve


def _next_to(day: TimeSpan, name: str, sign: int) -> TimeSpan:
    """Return the unit that ends where `day` begins, or begins where it ends."""
    if sign < 0:
        return TimeSpan(back(day.start, name, 1), day.start)
    return TimeSpan(day.end, back(day.end, name, -1))


def _edge(words: Words, i: int) -> Match | None:
    """Read `the start of March`, `mid-March`, `late 2024`, `the end of last week`."""
    number = _EDGES.get(words.word(i))
    if number is None:
        return None
    k = i + 1 if words.word(i) in _ADJECTIVES else words.phrase(i + 1, "of")
    whole = _whole(words, k) if k else None
    if whole is None:
        return None
    return Match(
        whole.end, "period", lambda bound: third(whole.resolve(bound), number), whole.cycle
    )


def _half(words: Words, i: int) -> Match | None:
    """Read `the first half of March`."""
    k = words.phrase(i, "first half of", "second half of")
    whole = _whole(words, k) if k else None
    if whole is None:
        return None
    is_first = words.word(i) == "first"
    return Match(
        whole.end, "period", lambda bound: half(whole.resolve(bound), is_first), whole.cycle
    )


def _whole(words: Words, i: int) -> Match | None:
    """Read what is long enough to have a beginning, a middle and an end."""
    k = words.phrase(i, "the") or i
    if words.word(k) in CALENDAR_UNITS and words.follows(k + 1) != "of":
        return calendar_unit(words, k, 0)
    if words.word(i, DASH):
        words = words.read_from(i)
    for rule in (relative, quarter, month_name, year_name):
        if (found := rule(words, k)) is not None:
            return found
    return None


def _part_of(words: Words, i: int) -> Match | None:
    """Read `the morning of 3 May`."""
    part = words.word(i)
    k = words.phrase(i + 1, "of")
    day = _day(words, k) if part in PARTS_OF_DAY and k else None
    if day is None or day.kind not in {"day", "weekday"}:
        return None
    return _at_part(day, day.end, part)


def _clock_first(words: Words, i: int) -> Match | None:
    """Read `3pm`, `3pm on Monday`, `noon yesterday`."""
    time = clock_time(words, i)
    if time is None:
        return None
    k = words.phrase(time.end, "on", "of") or time.end
    day = _day(words, k)
    if day is not None and day.kind in {"day", "weekday", "part"}:
        return _at_clock(day, time._replace(end=day.end))._replace(kind="clock_day")
    return Match(time.end, "clock", _latest_clock(time), "day")


def _day(words: Words, i: int) -> Match | None:
    for rule in (fixed, relative, date, weekday_name):
        if (found := rule(words, words.phrase(i, "the") or i)) is not None:
            return found
    return None


def _latest_clock(time: TimeOfDay) -> Resolve:
    def resolve(bound: datetime) -> TimeSpan:
        found = clock(bound, time.hour, time.minute)
        if is_before(bound, found.begin):
            return clock(add_days(bound, -1), time.hour, time.minute)
        return found

    return resolve


def _with_time(words: Words, found: Match) -> Match:
    """Return the day with the time of day that follows it, if one does."""
    if found.kind not in {"day", "weekday", "part"}:
        return found
    k = words.phrase(found.end, "at around", "at about", "at", "around", "about") or found.end
    if (time := clock_time(words, k, SPACE + COMMA)) is not None:
        return _at_clock(found, time)
    k = words.phrase(found.end, "in the", "during the", "at") or found.end
    if found.kind != "part" and (part := words.word(k)) in PARTS_OF_DAY:
        return _at_part(found, k + 1, part)
    return found


def _at_clock(day: Match, time: TimeOfDay) -> Match:
    return Match(
        time.end,
        "clock_day",
        lambda bound: clock_within(day.resolve(bound), time.hour, time.minute),
        day.cycle,
    )


def _at_part(day: Match, end: int, part: str) -> Match:
    return Match(end, "part", lambda bound: part_of_day(day.resolve(bound).start, part), day.cycle)


_RULES: tuple[Callable[[Words, int], Match | None], ...] = (
    _edge,
    _half,
    before_last,
    fixed,
    _beside,
    week_of_month,
    quarter,
    relative,
    ago,
    date,
    day_of_this_month,
    _part_of,
    _clock_first,
    weekday_name,
    month_name,
    year_name,
    weekend,
)

_BEGINNERS = frozenset(
    {
        *("day", "other", "yesterday", "today", "tonight", "recently", "lately", "just", "moments"),
        *("this", "these", "more", "over", "less", "under", "weekend", "q1", "q2", "q3", "q4"),
        *("h1", "h2", *LAST, *_EDGES, *VAGUELY, *CALENDAR_UNITS, *PARTS_OF_DAY),
    }
)


def may_begin(word: str) -> bool:
    """Tell quickly whether a time may begin with `word`: with most words none does."""
    return word in _BEGINNERS or is_name_or_number(word)
