"""Read times that are told from now: `yesterday`, `two weeks ago`, `last month`, `this week`."""

from datetime import datetime, timedelta

from toolfold.memory.when.dates import in_week
from toolfold.memory.when.reader import Match, Words, amounts, month, unit, weekday
from toolfold.memory.when.spans import (
    PARTS_OF_DAY,
    TimeSpan,
    add_days,
    add_elapsed,
    around,
    back,
    days_from,
    earliest,
    in_whole,
    is_before,
    latest_month,
    latest_weekday,
    months_from,
    part_of_day,
    unit_around,
    unit_before,
    until_now,
    weekend_around,
)

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
