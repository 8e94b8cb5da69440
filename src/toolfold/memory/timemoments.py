"""Read what names one time: `yesterday`, `two weeks ago`, `last month`, `Monday at 3pm`."""

from collections.abc import Callable
from datetime import datetime, timedelta

from toolfold.memory.timedates import (
    date,
    day_of_this_month,
    in_week,
    month_name,
    quarter,
    week_of_month,
    weekday_name,
    year_name,
)
from toolfold.memory.timereader import (
    Clock,
    Match,
    Words,
    amounts,
    clock_time,
    is_name_or_number,
    month,
    unit,
    weekday,
)
from toolfold.memory.timespans import (
    PARTS_OF_DAY,
    Span,
    add_days,
    add_elapsed,
    around,
    back,
    clock,
    clock_within,
    days_from,
    earliest,
    in_whole,
    is_before,
    latest_month,
    latest_weekday,
    months_from,
    part_of_day,
    third,
    unit_around,
    unit_before,
    until_now,
    weekend_around,
)
from toolfold.memory.timetokens import COMMA, DASH, SPACE

_RECENT_DAYS = 14
_JUST_NOW = timedelta(minutes=10)
_ROLLING = {"in", "within", "over", "during", "for", "throughout"}
_LAST = {"last", "previous", "past"}
_CALENDAR_UNITS = {"week", "month", "quarter", "year"}
_ELAPSED_UNITS = {"second", "minute", "hour"}
_EDGES = {"start": 0, "beginning": 0, "early": 0, "middle": 1, "mid": 1, "end": 2, "late": 2}
_ADJECTIVES = {"early", "mid", "late"}
_VAGUELY = {"about", "around", "roughly", "approximately", "nearly", "almost", "some"}


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


def _fixed(words: Words, i: int) -> Match | None:
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
    if words.word(i) in {"recently", "lately"}:
        return _until_now(words, i + 1, add_days(now, -_RECENT_DAYS))
    if end := words.phrase(i, "just now", "a moment ago", "moments ago"):
        return _until_now(words, end, add_elapsed(now, -_JUST_NOW))
    return None


def _until_now(words: Words, end: int, start: datetime) -> Match:
    return Match(end, "period", lambda _bound: until_now(start, words.now))


def _ago(words: Words, i: int) -> Match | None:
    """Read `two weeks ago`, `about an hour ago`, `more than a year ago`, `less than a week ago`."""
    i = i + 1 if words.word(i) in _VAGUELY else i
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
        return Match(end, "period", lambda _bound: Span(earliest(words.now), nearest))
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
    return Match(end, kind, lambda _bound: Span(first.start, finish, first.at))


def _relative(words: Words, i: int) -> Match | None:
    """Read what begins with `last`, `past`, `previous`, `this` or `these`."""
    word = words.word(i)
    if word in {"this", "these"} and words.word(i + 1) in _LAST:
        return _rolling(words, i + 2, is_singular_fine=True) or _last_weekday(words, i + 2)
    if word in {"this", "these"}:
        return _this(words, i + 1)
    if word not in _LAST:
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
    if word in _CALENDAR_UNITS and words.follows(i + 1) != "of":
        return _calendar_unit(words, i, 1)
    if (number := month(words, i)) is not None and words.follows(i + 1) not in {"of", "on"}:
        before = unit_around(now, "month", week_start=0).start - timedelta(days=1)
        return Match(i + 1, "period", lambda _bound: latest_month(before, number))
    return _last_weekday(words, i)


def _calendar_unit(words: Words, i: int, count: int) -> Match:
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
    if word in _CALENDAR_UNITS:
        return _calendar_unit(words, i, 0)
    if (number := weekday(words, i)) is not None:
        return Match(i + 1, "day", in_week(words, 0, number))
    return _this_month(words, i) or _rolling(words, i, is_singular_fine=False)


def _this_month(words: Words, i: int) -> Match | None:
    number = month(words, i)
    if number is None or not words.tokens[i].is_capital:
        return None
    first = unit_around(words.now, "year", week_start=0).start.replace(month=number)
    return Match(i + 1, "period", lambda _bound: months_from(first, 1))


def _before_last(words: Words, i: int) -> Match | None:
    """Read `the week before last`."""
    name = words.word(i)
    end = words.phrase(i + 1, "before last")
    if not end or name not in {*_CALENDAR_UNITS, "weekend"}:
        return None
    if name == "weekend":
        back_by = 1 + (words.now.weekday() >= 5)
        return Match(end, "period", lambda _bound: weekend_around(words.now, back_by=back_by))
    found = unit_before(words.now, name, 2, week_start=words.week_start)
    return Match(end, "period", lambda _bound: found)


def _weekend(words: Words, i: int) -> Match | None:
    if words.word(i) != "weekend" or words.before(i) != "the":
        return None
    return Match(i + 1, "period", lambda _bound: weekend_around(words.now, back_by=0))


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


def _whole(words: Words, i: int) -> Match | None:
    """Read what is long enough to have a beginning, a middle and an end."""
    k = words.phrase(i, "the") or i
    if words.word(k) in _CALENDAR_UNITS and words.follows(k + 1) != "of":
        return _calendar_unit(words, k, 0)
    if words.word(i, DASH):
        words = words.read_from(i)
    for rule in (_relative, quarter, month_name, year_name):
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
    for rule in (_fixed, _relative, date, weekday_name):
        if (found := rule(words, words.phrase(i, "the") or i)) is not None:
            return found
    return None


def _latest_clock(time: Clock) -> Callable[[datetime], Span]:
    def resolve(bound: datetime) -> Span:
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


def _at_clock(day: Match, time: Clock) -> Match:
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
    _before_last,
    _fixed,
    week_of_month,
    quarter,
    _relative,
    _ago,
    date,
    day_of_this_month,
    _part_of,
    _clock_first,
    weekday_name,
    month_name,
    year_name,
    _weekend,
)

_BEGINNERS = frozenset(
    {
        *("day", "other", "yesterday", "today", "tonight", "recently", "lately", "just", "moments"),
        *("this", "these", "more", "over", "less", "under", "weekend", "q1", "q2", "q3", "q4"),
        *("h1", "h2", *_LAST, *_EDGES, *_VAGUELY, *_CALENDAR_UNITS, *PARTS_OF_DAY),
    }
)


def may_begin(word: str) -> bool:
    """Tell quickly whether a time may begin with `word`: with most words none does."""
    return word in _BEGINNERS or is_name_or_number(word)
