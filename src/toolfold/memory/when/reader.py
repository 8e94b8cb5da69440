"""Read the small things that time in words is made of: numbers, months, weekdays, clock times."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from toolfold.memory.when.spans import DASH, SPACE, UNITS, TimeSpan, Token


def _numbered(names: str, *, start: int = 0) -> dict[str, int]:
    """Number what stands between commas; all words of one place mean the same."""
    return {
        name: number for number, same in enumerate(names.split(","), start) for name in same.split()
    }


MONTHS = _numbered(
    "january jan, february feb, march mar, april apr, may, june jun, july jul, august aug,"
    "september sep sept, october oct, november nov, december dec",
    start=1,
)
WEEKDAYS = _numbered(
    "monday mon, tuesday tue tues, wednesday wed, thursday thu thur thurs, friday fri,"
    "saturday sat, sunday sun"
)
# Verbs and nouns of everyday language; in lower case they are months only where nothing else fits.
_WEAK_MONTHS = {"may", "march"}
# Also names of people: "before May left".
PERSONS = {"april", "may", "june"}
# Words that go on with a sentence, where a noun or verb would make a name or a number of the last.
FUNCTION_WORDS = frozenset(
    _numbered(
        "a about after all an and any are as at because before but by can concerning could did do"
        " does for from had has have he how i if in into is it its my not of on or our regarding"
        " she should so than that the their them there these they this those to us was we were"
        " what when where which while who why will with would you your"
    )
)
_COUNTED = {"people", "percent", "mb", "gb", "kb", "tb", "ms", "km", "kg", "px", "usd", "eur", "bc"}

_ONES = _numbered(
    "zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen,"
    "fourteen, fifteen, sixteen, seventeen, eighteen, nineteen"
)
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
_NUMBERS = {**_ONES, **_TENS}
# What somebody may mean who is vague: from so many to so many.
_VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 7)}
_ABBREVIATED = {
    name: unit
    for unit, names in {
        "second": "s sec secs",
        "minute": "m min mins",
        "hour": "h hr hrs",
        "day": "d",
        "week": "w wk wks",
        "month": "mo",
        "year": "y yr yrs",
    }.items()
    for name in names.split()
}

ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}

_COUNT = re.compile(r"(\d{1,6})(\.5)?")
_SHORT = re.compile(r"(\d{1,6})([a-z]{1,4})")
_DAY = re.compile(r"(\d{1,2})(st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20|21)\d\d")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d)(?::\d\d)?)?(am|pm)?")

Resolve = Callable[[datetime], TimeSpan]


class Match(NamedTuple):
    """Words that name a time, up to before the token `end`."""

    end: int
    kind: str
    """`period` and `day` stand alone; `month`, `year`, `weekday`, `clock` want a word before."""
    resolve: Resolve
    """Returns the time. What recurs is the last that has begun by the moment it is given."""
    cycle: str | None = None
    """The unit after which it comes again, if it does."""


class Amount(NamedTuple):
    """How many units, from fewest to most; both are the same unless somebody is vague."""

    end: int
    fewest: float
    most: float
    unit: str = ""


class Words:
    """The tokens of a text, read from one of them on, and the present to read them in."""

    def __init__(
        self, tokens: Sequence[Token], *, now: datetime, week_start: int, begin: int = 0
    ) -> None:
        self.tokens = tokens
        self.now = now
        self.week_start = week_start
        self.begin = begin
        self.moments: dict[int, Match | None] = {}

    def read_from(self, i: int) -> "Words":
        """Return the same words, for reading what begins at `i`, however it is joined."""
        return Words(self.tokens, now=self.now, week_start=self.week_start, begin=i)

    def word(self, i: int, joins: str = SPACE) -> str:
        """Return the word at `i` if it follows the one before it so, else nothing."""
        if not 0 <= i < len(self.tokens) or (i != self.begin and self.tokens[i].join not in joins):
            return ""
        return self.tokens[i].word

    def phrase(self, i: int, *choices: str) -> int:
        """Return where the first of these phrases that stands at `i` ends, else 0."""
        first = self.word(i)
        for choice in choices:
            if first and choice.startswith(first):
                words = choice.split()
                if words == [self.word(k) for k in range(i, i + len(words))]:
                    return i + len(words)
        return 0

    def follows(self, i: int) -> str:
        """Return the word that goes on after a phrase that ends before `i`."""
        return self.word(i) if i < len(self.tokens) and i != self.begin else ""

    def before(self, i: int) -> str:
        """Return the word before `i`, whatever stands between."""
        return self.tokens[i - 1].word if i > 0 else ""


def unit(word: str) -> str:
    """Return the unit that a word names, singular or plural."""
    singular = word.removesuffix("s")
    return singular if singular in UNITS else _ABBREVIATED.get(word if len(word) > 2 else "", "")


def number(words: Words, i: int) -> Amount | None:
    """Read `3`, `1.5`, `three`, `twenty-four`, `a`, `half a`, `a few`, `one and a half`."""
    word = words.word(i)
    if found := _COUNT.fullmatch(word):
        return _with_half(words, i + 1, int(found[1]) + (0.5 if found[2] else 0))
    ones = _ONES.get(words.word(i + 1, DASH + SPACE), 0)
    if word in _TENS and 0 < ones < 10:
        return Amount(i + 2, _TENS[word] + ones, _TENS[word] + ones)
    if word in _NUMBERS:
        return _with_half(words, i + 1, _NUMBERS[word])
    return _vague(words, i) or _article(words, i)


def _with_half(words: Words, i: int, count: float) -> Amount:
    if end := words.phrase(i, "and a half"):
        return Amount(end, count + 0.5, count + 0.5)
    return Amount(i, count, count)


def _vague(words: Words, i: int) -> Amount | None:
    k = i + 1 if words.word(i) == "a" else i
    if (word := words.word(k)) in _VAGUE:
        fewest, most = _VAGUE[word]
        return Amount(words.phrase(k + 1, "of") or k + 1, fewest, most)
    return None


def _article(words: Words, i: int) -> Amount | None:
    if end := words.phrase(i, "half a", "half an", "a half"):
        return Amount(end, 0.5, 0.5)
    if end := words.phrase(i, "a quarter of an", "quarter of an"):
        return Amount(end, 0.25, 0.25)
    return Amount(i + 1, 1, 1) if words.word(i) in {"a", "an"} else None


def amount(words: Words, i: int) -> Amount | None:
    """Read a number of units: `two weeks`, `an hour and a half`, `5min`, or just `weeks`."""
    word = words.word(i)
    if (short := _SHORT.fullmatch(word)) and short[2] in _ABBREVIATED:
        return Amount(i + 1, int(short[1]), int(short[1]), _ABBREVIATED[short[2]])
    if unit(word) and word.endswith("s") and not words.before(i).isdecimal():
        return Amount(i + 1, *_VAGUE["few"], unit(word))
    count = number(words, i)
    if count is None or not (name := unit(words.word(count.end))):
        return None
    half = words.phrase(count.end + 1, "and a half") if count.fewest == 1 else 0
    more = 0.5 if half else 0
    return Amount(half or count.end + 1, count.fewest + more, count.most + more, name)


def amounts(words: Words, i: int) -> Iterator[Amount]:
    """Read a length of up to three parts: `two years and three months`."""
    for _ in range(3):
        if (found := amount(words, i)) is None:
            return
        yield found
        i = words.phrase(found.end, "and") or found.end


def year(words: Words, i: int, joins: str = SPACE) -> int | None:
    """Read a year of four digits."""
    word = words.word(i, joins)
    return int(word) if _YEAR.fullmatch(word) else None


def is_count(words: Words, i: int) -> bool:
    """Tell whether the number before `i` rather counts what stands at `i`: `in 2000 words`."""
    word = words.follows(i)
    if word in _COUNTED:
        return True
    return len(word) > 3 and word.endswith("s") and word not in FUNCTION_WORDS


def month(words: Words, i: int, joins: str = SPACE) -> int | None:
    """Read the name of a month, in lower case only if it is not also another word."""
    word = words.word(i, joins)
    if word not in MONTHS or (len(word) < 4 and word != "may" and not words.tokens[i].is_capital):
        return None
    return MONTHS[word]


def is_weak_month(words: Words, i: int) -> bool:
    """Tell whether the month at `i` may as well be a verb."""
    return words.tokens[i].word in _WEAK_MONTHS and not words.tokens[i].is_capital


def weekday(words: Words, i: int, joins: str = SPACE) -> int | None:
    """Read the name of a weekday; short names must begin with a capital."""
    word = words.word(i, joins)
    if word not in WEEKDAYS or not (word.endswith("day") or words.tokens[i].is_capital):
        return None
    return WEEKDAYS[word]


def day_number(words: Words, i: int, joins: str = SPACE) -> int | None:
    """Read a day of the month: `3`, `3rd`."""
    found = _DAY.fullmatch(words.word(i, joins))
    return int(found[1]) if found and 1 <= int(found[1]) <= 31 else None


class TimeOfDay(NamedTuple):
    """A time of day."""

    end: int
    hour: int
    minute: int


_NAMED_CLOCKS = {"noon": 12, "midday": 12, "midnight": 0}


def clock_time(words: Words, i: int, joins: str = SPACE) -> TimeOfDay | None:
    """Read `3pm`, `3:30 pm`, `15:00` or `noon`."""
    word = words.word(i, joins)
    if word in _NAMED_CLOCKS:
        return TimeOfDay(i + 1, _NAMED_CLOCKS[word], 0)
    found = _CLOCK.fullmatch(word)
    if not found:
        return None
    half, end = found[3], i + 1
    if half is None and words.word(i + 1) in {"am", "pm"}:
        half, end = words.word(i + 1), i + 2
    if half is None and found[2] is None:
        return None
    return _checked(TimeOfDay(end, int(found[1]), int(found[2] or 0)), half)


def _checked(found: TimeOfDay, half: str | None) -> TimeOfDay | None:
    hour = found.hour
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return found._replace(hour=hour) if hour < 24 and found.minute < 60 else None


_NAMES = frozenset(
    {
        *MONTHS,
        *WEEKDAYS,
        *_NUMBERS,
        *_VAGUE,
        *_NAMED_CLOCKS,
        *ORDINALS,
        "a",
        "an",
        "half",
        "quarter",
    }
)


def is_name_or_number(word: str) -> bool:
    """Tell whether anything here may begin with `word`."""
    return word[:1].isdecimal() or word in _NAMES or (word.endswith("s") and unit(word) != "")
