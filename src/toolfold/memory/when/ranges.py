"""Read a whole phrase of time: `since Monday`, `between 3 and 7 May`, `in the last two weeks`."""

import re
from datetime import datetime, timedelta

from toolfold.memory.when.dates import VAGUE_WORDS, is_person
from toolfold.memory.when.moments import may_begin, moment
from toolfold.memory.when.reader import (
    PERSONS,
    Match,
    TimeOfDay,
    Words,
    clock_time,
    day_number,
    is_weak_month,
    month,
    year,
)
from toolfold.memory.when.spans import (
    COMMA,
    DASH,
    SPACE,
    TimeSpan,
    add_days,
    add_elapsed,
    add_months,
    clock_within,
    days_from,
    earliest,
    is_before,
    latest_day,
    midnight,
    until_now,
)

_ALONE = {"period", "day", "part", "clock_day"}
_INTRODUCED = {
    "month": {"in", "during", "throughout", "over", "from", "of"},
    "year": {"in", "during", "throughout", "over", "from", "of"},
    "weekday": {"on", "from"},
    "clock": {"at", "around", "about"},
}
_SKIPPED = {"in", "on", "at", "during", "over", "within", "throughout", "from", "for", "of"}
# A time after one of these is yet to come, or comes again and again.
_BLOCKING = {"next", "coming", "upcoming", "following", "every", "each", "later", "tomorrow"}
_TO = ("to", "until", "till", "through", "up to")
_OPEN = {
    "since": "since",
    "after": "after",
    "before": "before",
    "until": "until",
    "till": "until",
    "by": "until",
}
# What somebody is "up to" is what they do.
_BUSY = {"am", "are", "be", "been", "get", "got", "is", "was", "were", "you", "they", "he", "she"}
_OPEN_PHRASES = {"up to": "until", "up until": "until", "prior to": "before", "ever since": "since"}
_BEGINNERS = frozenset(
    {*_SKIPPED, *_OPEN, "between", "around", "about", "back", "sometime", "earlier", "up", "prior"}
    | {"ever", "the"}
)
_DAYS = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?[-\u2013](\d{1,2})(?:st|nd|rd|th)?")
_YEARS = re.compile(r"((?:19|20|21)\d\d)[-\u2013]((?:19|20|21)\d\d)")
_DATES = re.compile(r"(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)")


def phrase(words: Words) -> tuple[int, TimeSpan | None] | None:
    """Return where the words that name a time end, and the time; None if they name none.

    There is no time where it is yet to begin: nothing is remembered from then.
    """
    i, ahead = words.begin, None
    word = words.word(i)
    if not (word in _BEGINNERS or may_begin(word)) or words.before(i) in _BLOCKING:
        return None
    for rule in (_open, _closed, _plain):
        found = rule(words, i)
        if found is not None and words.follows(found.end) not in {"tomorrow", "next"}:
            span = found.resolve(words.now)
            if is_before(words.now, span.start):
                ahead = (found.end, None)
            elif is_before(span.start, span.end):
                return found.end, span
    return ahead


def _open(words: Words, i: int) -> Match | None:
    """Read `since …`, `after …`, `before …`, `until …`, `from … on`."""
    side, k = _side(words, i)
    found = moment(words, k) if side else None
    if found is None or _is_doubtful(words, i, found, side):
        return None

    def resolve(bound: datetime) -> TimeSpan:
        # `Before noon` is today's noon even in the morning.
        is_today = found.kind == "clock" and side in {"before", "until"}
        return _cut(words, found, side, found.resolve(_end_of_day(bound) if is_today else bound))

    return Match(found.end, "period", resolve)


def _end_of_day(moment: datetime) -> datetime:
    return add_elapsed(days_from(moment, 1).end, timedelta(microseconds=-1))


def _side(words: Words, i: int) -> tuple[str, int]:
    for text, side in _OPEN_PHRASES.items():
        if end := words.phrase(i, text):
            return side, end
    return _OPEN.get(words.word(i), ""), i + 1


def _is_doubtful(words: Words, i: int, found: Match, side: str) -> bool:
    """Tell whether it may mean something else: `before may I`, `since May left`, `up to lately`."""
    last = words.tokens[found.end - 1].word
    if words.word(i) == "by":
        return found.kind not in {"day", "period", "year"}
    if words.word(i) == "up" and (words.before(i) in _BUSY or last in VAGUE_WORDS):
        return True
    if found.kind != "month":
        return False
    is_verb = is_weak_month(words, found.end - 1) and side in {"before", "after"}
    return is_verb or is_person(words, found.end)


def _cut(words: Words, found: Match, side: str, span: TimeSpan) -> TimeSpan:
    """Return the time on one side of `span`; around a time of day, what is left of that day."""
    day = days_from(span.begin, 1) if found.kind in {"clock", "clock_day"} else None
    if side == "since":
        return until_now(span.begin, words.now)
    if side == "after":
        return TimeSpan(span.finish, day.end) if day else until_now(span.finish, words.now)
    start = day.start if day else earliest(words.now)
    return TimeSpan(start, span.begin if side == "before" else span.finish)


def _closed(words: Words, i: int) -> Match | None:
    """Read a range with two ends."""
    if words.word(i) == "between":
        return _pair(words, i + 1, ("and",))
    if words.word(i) in {"from", "in", "during", "over"}:
        found = _pair(words, i + 1, _TO) if words.word(i) == "from" else None
        return found or _onwards(words, i) or _written(words, i + 1)
    if (found := _written(words, i)) is not None:
        return found
    first = moment(words, i)
    found = _pair(words, i, ("to", "through")) if first is not None else _days(words, i, _TO)
    return found if found is not None and found.kind in _ALONE else None


def _onwards(words: Words, i: int) -> Match | None:
    """Read `from Monday on`."""
    found = moment(words, i + 1) if words.word(i) == "from" else None
    end = words.phrase(found.end, "on", "onward", "onwards") if found else 0
    if found is None or not end:
        return None
    return Match(end, "period", lambda bound: until_now(found.resolve(bound).begin, words.now))


def _pair(words: Words, i: int, joiners: tuple[str, ...]) -> Match | None:
    """Read two times with one of `joiners` between them, or a dash."""
    if (found := _days(words, i, joiners)) is not None:
        return found
    first = _end_point(words, i)
    if first is None:
        return _hours(words, i, joiners)
    k = _after_joiner(words, first.end, joiners)
    last = _end_point(words.read_from(k), k) if k else None
    if last is None:
        return None
    kind = "period" if last.kind in _ALONE else "open"
    return Match(last.end, kind, lambda bound: _between(first, last, bound))


def _after_joiner(words: Words, i: int, joiners: tuple[str, ...]) -> int:
    return words.phrase(i, *joiners) or (i if words.word(i, DASH) and not words.word(i) else 0)


def _end_point(words: Words, i: int) -> Match | None:
    """Read one end of a range; `now` may be one too."""
    if words.word(i) == "now":
        return Match(i + 1, "period", lambda _bound: until_now(words.now, words.now))
    return moment(words, i)


def _between(first: Match, last: Match, bound: datetime) -> TimeSpan:
    """Return the time from `first` to `last`; what recurs is taken so that they are close."""
    if last.cycle is not None and first.cycle in {None, last.cycle}:
        start = first.resolve(bound)
        end = last.resolve(_one_cycle_after(start, last.cycle))
    else:
        end = last.resolve(bound)
        start = first.resolve(end.begin)
    if is_before(end.begin, start.begin):
        start, end = end, start
    return TimeSpan(start.begin, end.finish)


def _one_cycle_after(span: TimeSpan, cycle: str) -> datetime:
    """Return a bound by which the next of what recurs has begun, and not the one after it."""
    if cycle == "day":
        return add_days(span.begin, 1)
    if cycle == "week":
        return add_days(span.start, 8)
    return add_days(add_months(midnight(span.start), 12 if cycle == "year" else 1), -1)


def _days(words: Words, i: int, joiners: tuple[str, ...]) -> Match | None:
    """Read `3 and 7 May`, `3-7 May`, `May 3-7`, `May 3 to 7, 2026`."""
    k = words.phrase(i, "the") or i
    number = month(words, k)
    numbers = _two_days(words, k if number is None else k + 1, joiners)
    if numbers is None:
        return None
    end, first, last = numbers
    month_at = k
    if number is None:
        month_at = words.phrase(end, "of") or end
        number, end = month(words, month_at), month_at + 1
    if number is None or first >= last:
        return None
    if is_weak_month(words, month_at) and words.begin == i and year(words, end) is None:
        return None
    return _days_of(words, end, number, (first, last))


def _two_days(words: Words, i: int, joiners: tuple[str, ...]) -> tuple[int, int, int] | None:
    if found := _DAYS.fullmatch(words.word(i)):
        return i + 1, int(found[1]), int(found[2])
    first = day_number(words, i)
    k = _after_joiner(words, i + 1, joiners) if first is not None else 0
    k = words.phrase(k, "the") or k
    last = day_number(words, k, SPACE + DASH) if k else None
    return None if first is None or last is None else (k + 1, first, last)


def _days_of(words: Words, i: int, number: int, days: tuple[int, int]) -> Match:
    named = year(words, i, SPACE + COMMA)
    first, last = days

    def resolve(bound: datetime) -> TimeSpan:
        limit = bound if named is None else datetime(named, number, last, tzinfo=bound.tzinfo)
        start = latest_day(limit, number, first).start
        return TimeSpan(start, add_days(start.replace(day=last), 1))

    return Match(i if named is None else i + 1, "period", resolve)


def _hours(words: Words, i: int, joiners: tuple[str, ...]) -> Match | None:
    """Read `2 and 4pm`, whose first hour is of the same half of the day."""
    hour = day_number(words, i)
    k = _after_joiner(words, i + 1, joiners) if hour is not None else 0
    last = clock_time(words, k) if k else None
    end = moment(words, k) if last is not None else None
    if hour is None or last is None or end is None or hour > 12:
        return None
    first = hour % 12 + (12 if last.hour >= 12 and hour % 12 <= last.hour % 12 else 0)

    def resolve(bound: datetime) -> TimeSpan:
        found = end.resolve(bound).begin
        return TimeSpan(clock_within(days_from(found, 1), first, 0).begin, found)

    return Match(end.end, "period", resolve)


def _written(words: Words, i: int) -> Match | None:
    """Read `2026-05-03..2026-05-07`, and after a preposition `2023-2025`."""
    word, zone = words.word(i), words.now.tzinfo
    if found := _DATES.fullmatch(word):
        first, last = (datetime.fromisoformat(one).replace(tzinfo=zone) for one in found.groups())
        return Match(i + 1, "period", lambda _bound: TimeSpan(first, add_days(last, 1)))
    if (found := _YEARS.fullmatch(word)) and i != words.begin:
        first, last = (datetime(int(one), 1, 1, tzinfo=zone) for one in found.groups())
        return Match(i + 1, "period", lambda _bound: TimeSpan(first, add_months(last, 12)))
    return None


def _plain(words: Words, i: int) -> Match | None:
    """Read one time with the preposition before it, if there is one."""
    i = words.phrase(i, "back", "sometime") or i
    if words.word(i) == "earlier":
        return _earlier(words, i + 1)
    alone = moment(words, i)
    if alone is not None:
        alone = _with_hours(words, alone)
        return alone if alone.kind in _ALONE or _is_all(words, i, alone) else None
    found = moment(words, i + 1)
    if found is None or not _may_introduce(words, words.word(i), found):
        return None
    return _with_hours(words, found)


def _is_all(words: Words, i: int, found: Match) -> bool:
    """Tell whether the text says nothing else, so that even `March` alone is a month."""
    is_whole = i == 0 and found.end == len(words.tokens)
    return is_whole and (found.kind != "month" or not is_weak_month(words, found.end - 1))


def _may_introduce(words: Words, preposition: str, found: Match) -> bool:
    if found.kind == "clock_day" and preposition in _INTRODUCED["clock"]:
        return True
    if found.kind in _ALONE:
        return preposition in _SKIPPED
    is_name = words.tokens[found.end - 1].word in PERSONS
    if found.kind == "month" and preposition in {"from", "of"} and is_name:
        return False
    return preposition in _INTRODUCED.get(found.kind, set())


def _earlier(words: Words, i: int) -> Match | None:
    """Read `earlier today`, `earlier this week`: up to now."""
    found = moment(words, i)
    if found is None or found.kind not in _ALONE:
        return None

    def resolve(bound: datetime) -> TimeSpan:
        span, now = found.resolve(bound), until_now(words.now, words.now).end
        return TimeSpan(span.start, now if is_before(now, span.end) else span.end)

    return found._replace(resolve=resolve)


def _with_hours(words: Words, day: Match) -> Match:
    """Return the day with the hours that follow it: `yesterday between 2pm and 4pm`."""
    i = day.end
    if day.kind not in {"day", "weekday"}:
        return day
    joiners = {"between": ("and",), "from": _TO}.get(words.word(i))
    if joiners is not None:
        return _from_hour_to_hour(words, day, joiners) or day
    side, k = _side(words, i)
    time = clock_time(words, k) if side else None
    if time is None:
        return day

    def resolve(bound: datetime) -> TimeSpan:
        whole = day.resolve(bound)
        at = clock_within(whole, time.hour, time.minute).begin
        return TimeSpan(at, whole.end) if side in {"since", "after"} else TimeSpan(whole.start, at)

    return Match(time.end, "period", resolve)


def _from_hour_to_hour(words: Words, day: Match, joiners: tuple[str, ...]) -> Match | None:
    first = clock_time(words, day.end + 1)
    k = _after_joiner(words, first.end, joiners) if first else 0
    last = clock_time(words, k, SPACE + DASH) if k else None
    if first is None or last is None:
        return None
    return Match(last.end, "period", lambda bound: _hours_of(day.resolve(bound), first, last))


def _hours_of(day: TimeSpan, first: TimeOfDay, last: TimeOfDay) -> TimeSpan:
    start, end = (clock_within(day, one.hour, one.minute).begin for one in (first, last))
    return TimeSpan(start, end)
