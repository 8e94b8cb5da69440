"""Time in words: what is understood, what is not, and what holds for any text."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import computing_at_most

from toolfold.memory.when.phrases import TimeFound, TimeRange, describe, find_time

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 5, 13, 10, 30, tzinfo=BERLIN)
"""A Wednesday."""

# A phrase, where its range starts, and before what it ends.
PHRASES = """
today                                    | 2026-05-13 | 2026-05-14
yesterday                                | 2026-05-12 | 2026-05-13
the day before yesterday                 | 2026-05-11 | 2026-05-12
this morning                             | 2026-05-13 | 2026-05-13T12:00
last night                               | 2026-05-12T18:00 | 2026-05-13T05:00
last evening                             | 2026-05-12T17:00 | 2026-05-13
yesterday morning                        | 2026-05-12 | 2026-05-12T12:00
yesterday afternoon                      | 2026-05-12T12:00 | 2026-05-12T18:00
yesterday evening                        | 2026-05-12T17:00 | 2026-05-13
yesterday night                          | 2026-05-12T18:00 | 2026-05-13T05:00
Monday morning                           | 2026-05-11 | 2026-05-11T12:00
on Friday night                          | 2026-05-08T18:00 | 2026-05-09T05:00
5 minutes ago                            | 2026-05-13T10:20 | 2026-05-13T10:30
two hours ago                            | 2026-05-13T08:00 | 2026-05-13T09:00
half an hour ago                         | 2026-05-13T09:55 | 2026-05-13T10:05
an hour and a half ago                   | 2026-05-13T08:55 | 2026-05-13T09:05
one and a half years ago                 | 2024-10-29 | 2024-11-29
a couple of days ago                     | 2026-05-10 | 2026-05-12
a few weeks ago                          | 2026-04-05 | 2026-05-03
several months ago                       | 2025-09-28 | 2026-03-01
3 days ago                               | 2026-05-10 | 2026-05-11
a week ago                               | 2026-05-03 | 2026-05-10
two weeks ago                            | 2026-04-26 | 2026-05-03
two months ago                           | 2026-02-26 | 2026-03-29
a month ago                              | 2026-03-29 | 2026-04-29
a year ago                               | 2024-11-12 | 2025-11-12
10 years ago                             | 2015-11-13 | 2016-11-12
1.5 years ago                            | 2024-10-29 | 2024-11-29
about two weeks ago                      | 2026-04-26 | 2026-05-03
more than a year ago                     | ever | 2025-05-13T10:30
over two months ago                      | ever | 2026-03-13T10:30
less than a week ago                     | 2026-05-06T10:30 | now
2 years and 3 months ago                 | 2024-01-29 | 2024-02-29
twenty-four hours ago                    | 2026-05-12T10:00 | 2026-05-12T11:00
5min ago                                 | 2026-05-13T10:20 | 2026-05-13T10:30
3d ago                                   | 2026-05-10 | 2026-05-11
weeks ago                                | 2026-04-05 | 2026-05-03
a week ago today                         | 2026-05-06 | 2026-05-07
last week                                | 2026-05-04 | 2026-05-11
2026-W10                                 | 2026-03-02 | 2026-03-09
in 2026w01                               | 2025-12-29 | 2026-01-05
the past week                            | 2026-05-06T10:30 | now
in the last week                         | 2026-05-06T10:30 | now
this week                                | 2026-05-11 | 2026-05-18
last 3 days                              | 2026-05-10T10:30 | now
the last few days                        | 2026-05-08T10:30 | now
past 24 hours                            | 2026-05-12T10:30 | now
the last hour                            | 2026-05-13T09:30 | now
in the last day                          | 2026-05-12T10:30 | now
over the past two weeks                  | 2026-04-29T10:30 | now
these past few days                      | 2026-05-08T10:30 | now
previous 3 months                        | 2026-02-13T10:30 | now
last month                               | 2026-04-01 | 2026-05-01
this month                               | 2026-05-01 | 2026-06-01
last quarter                             | 2026-01-01 | 2026-04-01
this quarter                             | 2026-04-01 | 2026-07-01
last year                                | 2025-01-01 | 2026-01-01
this year                                | 2026-01-01 | 2027-01-01
previous year                            | 2025-01-01 | 2026-01-01
the week before last                     | 2026-04-27 | 2026-05-04
the month before last                    | 2026-03-01 | 2026-04-01
last Monday                              | 2026-05-11 | 2026-05-12
last Wednesday                           | 2026-05-06 | 2026-05-07
on Tuesday                               | 2026-05-12 | 2026-05-13
on Wednesday                             | 2026-05-06 | 2026-05-07
this Monday                              | 2026-05-11 | 2026-05-12
this past Friday                         | 2026-05-08 | 2026-05-09
Tuesday of last week                     | 2026-05-05 | 2026-05-06
last week on Tuesday                     | 2026-05-05 | 2026-05-06
since Mon                                | 2026-05-11 | now
in March                                 | 2026-03-01 | 2026-04-01
in June                                  | 2025-06-01 | 2025-07-01
in March 2025                            | 2025-03-01 | 2025-04-01
last March                               | 2026-03-01 | 2026-04-01
last May                                 | 2025-05-01 | 2025-06-01
last June                                | 2025-06-01 | 2025-07-01
this March                               | 2026-03-01 | 2026-04-01
March 2025                               | 2025-03-01 | 2025-04-01
in May                                   | 2026-05-01 | 2026-06-01
between 3 and 7 May                      | 2026-05-03 | 2026-05-08
between 3rd and 7th of May 2025          | 2025-05-03 | 2025-05-08
from 3 May to 7 May                      | 2026-05-03 | 2026-05-08
from 3 to 7 May                          | 2026-05-03 | 2026-05-08
May 3-7                                  | 2026-05-03 | 2026-05-08
3-7 May                                  | 2026-05-03 | 2026-05-08
3–7 May 2025                             | 2025-05-03 | 2025-05-08
May 3 to 7, 2025                         | 2025-05-03 | 2025-05-08
May 30 to June 2                         | 2025-05-30 | 2025-06-03
between March and May                    | 2026-03-01 | 2026-06-01
between November and February            | 2025-11-01 | 2026-03-01
from November 2024 to February 2025      | 2024-11-01 | 2025-03-01
between Monday and Tuesday               | 2026-05-11 | 2026-05-13
from Monday to Friday                    | 2026-05-11 | 2026-05-16
between yesterday and today              | 2026-05-12 | 2026-05-14
since Monday                             | 2026-05-11 | now
since last week                          | 2026-05-04 | now
since March                              | 2026-03-01 | now
since 2024                               | 2024-01-01 | now
since this morning                       | 2026-05-13 | now
since the weekend                        | 2026-05-09 | now
since yesterday                          | 2026-05-12 | now
since 3pm                                | 2026-05-12T15:00 | now
since two weeks ago                      | 2026-04-29 | now
since the start of the month             | 2026-05-01 | now
before March                             | ever | 2026-03-01
before 2024                              | ever | 2024-01-01
before last week                         | ever | 2026-05-04
after 2026-01-02                         | 2026-01-03 | now
after March                              | 2026-04-01 | now
until yesterday                          | ever | 2026-05-13
until last Friday                        | ever | 2026-05-09
up to 3 May                              | ever | 2026-05-04
from Monday on                           | 2026-05-11 | now
from 2023 to 2025                        | 2023-01-01 | 2026-01-01
between 2023 and 2025                    | 2023-01-01 | 2026-01-01
in 2023-2025                             | 2023-01-01 | 2026-01-01
in 2024                                  | 2024-01-01 | 2025-01-01
during 2024                              | 2024-01-01 | 2025-01-01
Q3 2025                                  | 2025-07-01 | 2025-10-01
in Q1                                    | 2026-01-01 | 2026-04-01
2025 Q3                                  | 2025-07-01 | 2025-10-01
H1 2025                                  | 2025-01-01 | 2025-07-01
the third quarter of 2025                | 2025-07-01 | 2025-10-01
the last quarter of 2025                 | 2025-10-01 | 2026-01-01
the weekend                              | 2026-05-09 | 2026-05-11
over the weekend                         | 2026-05-09 | 2026-05-11
last weekend                             | 2026-05-09 | 2026-05-11
2026-05-03                               | 2026-05-03 | 2026-05-04
2026-05-03T10:00Z                        | 2026-05-03T11:30 | 2026-05-03T12:30
2026-05-03 10:00                         | 2026-05-03T09:30 | 2026-05-03T10:30
2026-05-03T10:00:00+02:00                | 2026-05-03T09:30 | 2026-05-03T10:30
2026-05-03..2026-05-07                   | 2026-05-03 | 2026-05-08
2026-05-03 to 2026-05-07                 | 2026-05-03 | 2026-05-08
in 2026-04                               | 2026-04-01 | 2026-05-01
3 May 2026                               | 2026-05-03 | 2026-05-04
May 3rd                                  | 2026-05-03 | 2026-05-04
May 3rd, 2025                            | 2025-05-03 | 2025-05-04
3rd of May                               | 2026-05-03 | 2026-05-04
the 3rd of April                         | 2026-04-03 | 2026-04-04
Tuesday, 5 May                           | 2026-05-05 | 2026-05-06
on Tuesday, May 5th, 2026                | 2026-05-05 | 2026-05-06
3.5.2026                                 | 2026-05-03 | 2026-05-04
5/3/2026                                 | 2026-05-03 | 2026-05-04
13/5/2026                                | 2026-05-13 | 2026-05-14
2026/05/03                               | 2026-05-03 | 2026-05-04
at noon                                  | 2026-05-12T11:30 | 2026-05-12T12:30
at 9am                                   | 2026-05-13T08:30 | 2026-05-13T09:30
at 3pm                                   | 2026-05-12T14:30 | 2026-05-12T15:30
at noon yesterday                        | 2026-05-12T11:30 | 2026-05-12T12:30
around 3pm yesterday                     | 2026-05-12T14:30 | 2026-05-12T15:30
yesterday at 3pm                         | 2026-05-12T14:30 | 2026-05-12T15:30
yesterday around 15:00                   | 2026-05-12T14:30 | 2026-05-12T15:30
3pm on Monday                            | 2026-05-11T14:30 | 2026-05-11T15:30
this morning at 9:15                     | 2026-05-13T08:45 | 2026-05-13T09:45
last night at 2am                        | 2026-05-13T01:30 | 2026-05-13T02:30
yesterday between 2pm and 4pm            | 2026-05-12T14:00 | 2026-05-12T16:00
between 2pm and 4pm yesterday            | 2026-05-12T14:00 | 2026-05-12T16:00
between 2 and 4pm yesterday              | 2026-05-12T14:00 | 2026-05-12T16:00
yesterday after 5pm                      | 2026-05-12T17:00 | 2026-05-13
after 5pm yesterday                      | 2026-05-12T17:00 | 2026-05-13
before noon                              | 2026-05-13 | 2026-05-13T12:00
start of March                           | 2026-03-01 | 2026-03-11
the beginning of March                   | 2026-03-01 | 2026-03-11
middle of March                          | 2026-03-11 | 2026-03-21
the end of March                         | 2026-03-21 | 2026-04-01
mid-March                                | 2026-03-11 | 2026-03-21
early May                                | 2026-05-01 | 2026-05-11
late 2024                                | 2024-09-01 | 2025-01-01
end of last month                        | 2026-04-21 | 2026-05-01
the first week of March                  | 2026-03-01 | 2026-03-08
the last week of March 2025              | 2025-03-25 | 2025-04-01
earlier today                            | 2026-05-13 | now
earlier this week                        | 2026-05-11 | now
recently                                 | 2026-04-29T10:30 | now
lately                                   | 2026-04-29T10:30 | now
just now                                 | 2026-05-13T10:20 | now
the other day                            | 2026-05-06 | 2026-05-13
the morning of 3 May                     | 2026-05-03 | 2026-05-03T12:00
on the 3rd                               | 2026-05-03 | 2026-05-04
on the 31st                              | 2026-03-31 | 2026-04-01
back in March                            | 2026-03-01 | 2026-04-01
sometime last week                       | 2026-05-04 | 2026-05-11
YESTERDAY                                | 2026-05-12 | 2026-05-13
on yesterday                             | 2026-05-12 | 2026-05-13
within the last hour                     | 2026-05-13T09:30 | now
in the last 30 minutes                   | 2026-05-13T10:00 | now
for the past year                        | 2025-05-13T10:30 | now
in the past 90 days                      | 2026-02-12T10:30 | now
the last two quarters                    | 2025-11-13T10:30 | now
last couple of weeks                     | 2026-04-22T10:30 | now
three hours ago                          | 2026-05-13T07:00 | 2026-05-13T08:00
an hour ago                              | 2026-05-13T09:00 | 2026-05-13T10:00
a day ago                                | 2026-05-12 | 2026-05-13
one week ago                             | 2026-05-03 | 2026-05-10
6 months ago                             | 2025-10-29 | 2025-11-29
half a year ago                          | 2025-10-29 | 2025-11-29
ninety days ago                          | 2026-02-12 | 2026-02-13
roughly 2 weeks ago                      | 2026-04-26 | 2026-05-03
twenty four hours ago                    | 2026-05-12T10:00 | 2026-05-12T11:00
a quarter ago                            | 2025-12-30 | 2026-03-31
last Friday night                        | 2026-05-08T18:00 | 2026-05-09T05:00
last Saturday                            | 2026-05-09 | 2026-05-10
this Tuesday                             | 2026-05-12 | 2026-05-13
on Sunday                                | 2026-05-10 | 2026-05-11
since Friday                             | 2026-05-08 | now
until Tuesday                            | ever | 2026-05-13
before Tuesday                           | ever | 2026-05-12
after Monday                             | 2026-05-12 | now
from last Monday to yesterday            | 2026-05-11 | 2026-05-13
from yesterday to now                    | 2026-05-12 | now
between 2026-04-01 and 2026-04-15        | 2026-04-01 | 2026-04-16
from 1 April to now                      | 2026-04-01 | now
from April 28 to May 2                   | 2026-04-28 | 2026-05-03
between 28 April and 2 May               | 2026-04-28 | 2026-05-03
1-5 January 2026                         | 2026-01-01 | 2026-01-06
January 1 - 5, 2026                      | 2026-01-01 | 2026-01-06
in January                               | 2026-01-01 | 2026-02-01
in december                              | 2025-12-01 | 2026-01-01
in Sept                                  | 2025-09-01 | 2025-10-01
in Sep 2025                              | 2025-09-01 | 2025-10-01
since january                            | 2026-01-01 | now
in may                                   | 2026-05-01 | 2026-06-01
since may                                | 2026-05-01 | now
in February 2024                         | 2024-02-01 | 2024-03-01
February 29                              | 2024-02-29 | 2024-03-01
29 February 2024                         | 2024-02-29 | 2024-03-01
on 1 May 2026                            | 2026-05-01 | 2026-05-02
on 2026-05-01                            | 2026-05-01 | 2026-05-02
since 2026-05-01T08:00                   | 2026-05-01T08:00 | now
during the weekend                       | 2026-05-09 | 2026-05-11
the weekend before last                  | 2026-05-02 | 2026-05-04
early this year                          | 2026-01-01 | 2026-05-02
late last year                           | 2025-08-31 | 2026-01-01
mid 2025                                 | 2025-05-02 | 2025-08-31
the middle of last week                  | 2026-05-06 | 2026-05-08
in early March                           | 2026-03-01 | 2026-03-11
at the end of April                      | 2026-04-21 | 2026-05-01
H2 2025                                  | 2025-07-01 | 2026-01-01
in the first quarter of 2026             | 2026-01-01 | 2026-04-01
since Q4 2025                            | 2025-10-01 | now
2026-05-12 at 3pm                        | 2026-05-12T14:30 | 2026-05-12T15:30
12 May at 15:30                          | 2026-05-12T15:00 | 2026-05-12T16:00
10:30 yesterday                          | 2026-05-12T10:00 | 2026-05-12T11:00
midnight yesterday                       | 2026-05-11T23:30 | 2026-05-12T00:30
at midday on Monday                      | 2026-05-11T11:30 | 2026-05-11T12:30
yesterday at around 3 pm                 | 2026-05-12T14:30 | 2026-05-12T15:30
yesterday from 10:00 to 12:00            | 2026-05-12T10:00 | 2026-05-12T12:00
Monday before noon                       | 2026-05-11 | 2026-05-11T12:00
until 3pm yesterday                      | 2026-05-12 | 2026-05-12T15:00
yesterday in the evening                 | 2026-05-12T17:00 | 2026-05-13
in the year 2024                         | 2024-01-01 | 2025-01-01
the week before 3 May 2026               | 2026-04-26 | 2026-05-03
the week after 3 April                   | 2026-04-04 | 2026-04-11
the week of 2026-05-06                   | 2026-05-04 | 2026-05-11
the day before 2026-05-03                | 2026-05-02 | 2026-05-03
the month before 3 May                   | 2026-04-03 | 2026-05-03
two weeks before 3 May                   | 2026-04-16 | 2026-04-23
3 days after 2026-05-03                  | 2026-05-06 | 2026-05-07
the Sunday before 6 May                  | 2026-05-03 | 2026-05-04
the Monday after 6 May                   | 2026-05-11 | 2026-05-12
the first half of March                  | 2026-03-01 | 2026-03-16
the second half of 2025                  | 2025-07-02 | 2026-01-01
Monday at 3:30 p.m.                      | 2026-05-11T15:00 | 2026-05-11T16:00
between yesterday and 3 May 2026         | 2026-05-03 | 2026-05-13
between 9am and 10am                     | 2026-05-13T09:00 | 2026-05-13T10:00
by 3 May                                 | ever | 2026-05-04
by 2024                                  | ever | 2025-01-01
a quarter of an hour ago                 | 2026-05-13T10:10 | 2026-05-13T10:20
"""  # noqa: RUF001

NOT_A_TIME = """
may I ask about auth
it may work
this may work
that may 3 times fail
3 may fail
of the 5 tests 3 may fail
before may I go
march on
we march 3 miles
the second item
the last second
at the last minute
last-minute change
sun and sea
he sat down
on sat phones
version 3.5.2
v3.5.2026
version 3.5.2026
release 2026.8.31
server-memory 2026.8.31
in 2000 words
about 2024 bytes
24/7 support
10.0.0.1
192.168.2026.1
May said yes
email from May
email from May about auth
with May and June
before May left
after June joined us
since May joined
as a last resort
the last time we met
my last name
the last one
the last day of the project
the last week of school
last year of college
end of the day
next week
next Monday
on Monday next week
every Monday
on Mondays
in two weeks
for three days
in a minute
the March release
in the 2024 report
tomorrow at 3pm
at 3pm tomorrow
later today
in March 2027
$2024 budget
notes/2026-05-03.md
https://example.org/yesterday
yesterday_notes
datetime.today()
CVE-2024-3094
issue 2024
port 3000
ratio 16:09
the 3rd floor
on the 3rd attempt
Q3 of the list
h1 title
2026-13-45
31 February
99999999 days ago
9999 years ago
1999-1990
half past three
in the past
walk past the house
chapter 3-7
pages 3-7 may differ
open Monday to Friday
Black Friday
August company
an august person
the decade
at 13pm
2026-05-03T25:00
1850-01-01
in H3 2025
earlier in the list
in 2024 people came
in 2030 people will come
what have you been up to for the weekend
written by May
by three people
on 21 November, 2027
June is a person
dec 2025 value
in dec format
mar the surface
a day
a few days
two weeks
one moment
second thoughts
it was 5 to 7
from 3 to 7
between 3 and 7
between you and me
since then
before that
after all
until now
since we met
after 3 attempts
before 2 retries
after 2000 requests
at 3
by Friday
in 5 minutes
ago
last
the past
mid-level
early returns
late binding
end of file
start of the function
middle of nowhere
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


def moment(text: str, now: datetime) -> datetime:
    named = {"ever": datetime(1, 1, 2, tzinfo=now.tzinfo), "now": now + timedelta(microseconds=1)}
    return named.get(text) or datetime.fromisoformat(text).replace(tzinfo=now.tzinfo)


def found(text: str, now: datetime = NOW, week_start: int = 0) -> TimeFound:
    result = find_time(text, now=now, week_start=week_start)
    assert result is not None, text
    return result


def days(text: str, now: datetime = NOW, week_start: int = 0) -> tuple[str, str]:
    """Return the first and the last day of what is found, which must be whole days."""
    range_ = found(text, now, week_start).range
    for end in (range_.start, range_.end):
        assert (end.hour, end.minute, end.second, end.microsecond) == (0, 0, 0, 0)
    return f"{range_.start:%Y-%m-%d}", f"{range_.end - timedelta(days=1):%Y-%m-%d}"


@pytest.mark.parametrize("row", lines(PHRASES), ids=lambda row: row.split("|")[0].strip())
def test_the_phrase_names_this_range(row: str) -> None:
    phrase, start, end = (part.strip() for part in row.split("|"))

    result = found(phrase)

    assert result.range == TimeRange(moment(start, NOW), moment(end, NOW))
    assert (result.span, result.rest) == ((0, len(phrase)), "")


@pytest.mark.parametrize("text", lines(NOT_A_TIME))
def test_this_names_no_time_that_could_be_remembered(text: str) -> None:
    assert find_time(text, now=NOW) is None


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("what did we decide last week about auth", "what did we decide about auth"),
        ("what happened yesterday?", "what happened?"),
        ("Yesterday, we met", ", we met"),
        ("notes from last month", "notes"),
        ("this week's decisions", "decisions"),
        ("this week’s decisions", "decisions"),  # noqa: RUF001
        ("Monday's standup", "standup"),
        ("in 2024 we moved", "we moved"),
        ("auth (two weeks ago) again", "auth () again"),
        ("tomorrow we redo what we did yesterday", "tomorrow we redo what we did"),
        ("may I see what changed in May", "may I see what changed"),
        ("the second note of yesterday", "the second note"),
        ("in March  two   spaces stay", "two   spaces stay"),
        ("first last week then yesterday", "first then yesterday"),
        ("what did she paint recently, on 3 May 2026", "what did she paint recently,"),
        ("today I look for what we said in 2024", "today I look for what we said"),
        ("what have you been up to lately", "what have you been up to"),
        ("what were you up to yesterday", "what were you up to"),
        ("late last night", "late"),
        ("yesterday between friends", "between friends"),
    ],
)
def test_the_words_are_taken_out_and_the_rest_stays(text: str, rest: str) -> None:
    assert found(text).rest == rest


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ("2026-03-31", "last month", ("2026-02-01", "2026-02-28")),
        ("2026-03-31", "a month ago today", ("2026-02-28", "2026-02-28")),
        ("2024-03-31", "a month ago today", ("2024-02-29", "2024-02-29")),
        ("2026-03-31", "a month ago", ("2026-02-13", "2026-03-15")),
        ("2024-02-29", "a year ago today", ("2023-02-28", "2023-02-28")),
        ("2026-01-01", "last month", ("2025-12-01", "2025-12-31")),
        ("2026-01-01", "yesterday", ("2025-12-31", "2025-12-31")),
        ("2026-01-15", "last quarter", ("2025-10-01", "2025-12-31")),
        ("2026-01-15", "between November and February", ("2025-11-01", "2026-02-28")),
        ("2026-05-05", "from 3 May to 7 May", ("2026-05-03", "2026-05-07")),
        ("2026-05-02", "from 3 May to 7 May", ("2025-05-03", "2025-05-07")),
        ("2026-05-16", "this weekend", ("2026-05-16", "2026-05-17")),
        ("2026-05-17", "the weekend", ("2026-05-16", "2026-05-17")),
        ("2026-05-17", "last weekend", ("2026-05-09", "2026-05-10")),
        ("2026-05-18", "last weekend", ("2026-05-16", "2026-05-17")),
        ("2026-05-16", "this Friday", ("2026-05-15", "2026-05-15")),
        ("2026-05-18", "on Monday", ("2026-05-11", "2026-05-11")),
        ("2026-03-15", "on the 31st", ("2026-01-31", "2026-01-31")),
        ("2026-03-01", "on the 1st", ("2026-03-01", "2026-03-01")),
    ],
)
def test_months_years_and_weeks_end_where_the_calendar_says(
    now: str, text: str, expected: tuple[str, str]
) -> None:
    noon = datetime.fromisoformat(now).replace(hour=12, tzinfo=BERLIN)

    assert days(text, noon) == expected


def test_tonight_is_found_once_it_has_begun() -> None:
    evening = NOW.replace(hour=22)

    assert find_time("tonight", now=NOW) is None
    assert found("tonight", evening).range == TimeRange(
        NOW.replace(hour=18, minute=0), datetime(2026, 5, 14, 5, tzinfo=BERLIN)
    )


def test_a_week_begins_on_the_day_that_was_chosen() -> None:
    sunday = datetime(2026, 5, 17, 12, tzinfo=BERLIN)

    assert days("this week", sunday) == ("2026-05-11", "2026-05-17")
    assert days("this week", sunday, week_start=6) == ("2026-05-17", "2026-05-23")
    assert days("last week", sunday, week_start=6) == ("2026-05-10", "2026-05-16")
    assert days("Monday of last week", sunday, week_start=6) == ("2026-05-11", "2026-05-11")


def test_a_day_has_23_hours_when_the_clock_goes_forward_and_25_when_it_goes_back() -> None:
    spring = found("yesterday", datetime(2026, 3, 30, 12, tzinfo=BERLIN)).range
    autumn = found("yesterday", datetime(2026, 10, 26, 12, tzinfo=BERLIN)).range

    assert (spring.end.timestamp() - spring.start.timestamp()) == 23 * 3600
    assert (autumn.end.timestamp() - autumn.start.timestamp()) == 25 * 3600


def test_hours_are_elapsed_hours_across_a_change_of_the_clock() -> None:
    after = datetime(2026, 3, 29, 4, 0, tzinfo=BERLIN)  # an hour earlier it was 01:59:59

    range_ = found("in the last 3 hours", after).range

    assert range_.start.astimezone(UTC) == datetime(2026, 3, 28, 23, tzinfo=UTC)


def test_a_range_within_the_hour_that_comes_twice_is_not_empty() -> None:
    second_time = datetime(2026, 10, 25, 2, 10, tzinfo=BERLIN, fold=1)

    range_ = found("in the last 30 minutes", second_time).range

    assert range_.end.timestamp() - range_.start.timestamp() == pytest.approx(1800, abs=0.001)


def test_a_day_without_midnight_begins_when_it_begins() -> None:
    cairo = datetime(2026, 4, 25, 12, tzinfo=ZoneInfo("Africa/Cairo"))

    range_ = found("yesterday", cairo).range

    assert range_.start.astimezone(UTC) == datetime(2026, 4, 23, 22, tzinfo=UTC)
    assert range_.end.astimezone(UTC) == datetime(2026, 4, 24, 21, tzinfo=UTC)


def test_words_are_understood_in_the_time_zone_of_now() -> None:
    instant = datetime(2026, 5, 13, 2, 0, tzinfo=UTC)
    tokyo, honolulu = (
        instant.astimezone(ZoneInfo(f"{z}")) for z in ("Asia/Tokyo", "Pacific/Honolulu")
    )

    assert days("today", tokyo) == ("2026-05-13", "2026-05-13")
    assert days("today", honolulu) == ("2026-05-12", "2026-05-12")
    assert found("today", tokyo).range.start.tzinfo is tokyo.tzinfo


def test_a_time_with_an_offset_is_told_in_the_time_zone_of_now() -> None:
    range_ = found("2026-05-03T10:00Z").range

    assert (range_.start.hour, range_.end.minute) == (11, 30)
    assert range_.start.tzinfo is BERLIN


def test_what_is_said_to_be_past_contains_this_very_moment() -> None:
    for text in ("recently", "since Monday", "last 3 days", "earlier today", "today", "this year"):
        range_ = found(text).range
        assert range_.start <= NOW < range_.end, text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "on Tuesday 12 May 2026"),
        ("in March", "in March 2026"),
        ("in 2024", "in 2024"),
        ("last week", "from 4 May 2026 to 10 May 2026"),
        ("before March", "before 1 March 2026"),
        ("yesterday afternoon", "on Tuesday 12 May 2026, 12:00 to 18:00"),
        ("yesterday evening", "on Tuesday 12 May 2026, 17:00 to 24:00"),
        ("last night", "from 12 May 2026, 18:00 to 13 May 2026, 05:00"),
        ("since Monday", "from 11 May 2026 to 13 May 2026, 10:30"),
    ],
)
def test_a_range_is_described_in_words(text: str, words: str) -> None:
    assert describe(found(text).range) == words


# Texts that are nearly times, so that rules are entered often and left late.
VOCABULARY = """
the last past this of in on at from to between and since before after until ago a half more than
3 7 03 2024 31 3rd 3-7 3pm 15:00 2026-05-03 2030-01-01 5/3/2026 99999 1.5 0 3d over couple few just
day week month quarter year days weeks hours minutes weekend morning night noon now earlier back
May march February monday Sun Q3 today yesterday tomorrow end early mid first every - , . '
"""
texts = st.text(max_size=120) | st.lists(st.sampled_from(VOCABULARY.split()), max_size=12).map(
    " ".join
)
zones = st.sampled_from(
    [
        UTC,
        timezone(timedelta(hours=-9, minutes=-30)),
        *map(
            ZoneInfo, ("Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe")
        ),
    ]
)
years = {"min_value": datetime(1971, 1, 1), "max_value": datetime(2199, 12, 31)}  # noqa: DTZ001
nows = st.datetimes(**years, timezones=zones)


@given(text=texts, now=nows, week_start=st.integers(0, 6))
@example(text="on 31 February", now=NOW, week_start=0)
@example(text="999999 years ago", now=NOW, week_start=0)
@example(text="from 2199 to 2199-12-31", now=NOW, week_start=0)
@example(text="٣ days ago", now=NOW, week_start=0)
@example(text="\ud800 yesterday", now=NOW, week_start=0)
def test_whatever_the_text_a_range_is_sound_and_the_rest_is_untouched(
    text: str, now: datetime, week_start: int
) -> None:
    result = find_time(text, now=now, week_start=week_start)

    if result is None:
        return
    start, end = result.range.start, result.range.end
    assert start.timestamp() < end.timestamp()
    assert start.timestamp() <= now.timestamp()
    assert start.tzinfo is end.tzinfo is now.tzinfo
    first, last = result.span
    assert 0 <= first < last <= len(text)
    before, after = text[:first], text[last:]
    assert "".join(result.rest.split()) == "".join((before + after).split())
    assert not before[-1:].isalnum()
    assert not after[:1].isalnum()
    assert describe(result.range)


SECONDS = {"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": 31 * 86400}
CLOCK_CHANGE_S = 3601


@given(count=st.integers(1, 500), unit=st.sampled_from(sorted(SECONDS)), now=nows)
def test_the_last_so_many_units_are_no_longer_than_that(
    count: int, unit: str, now: datetime
) -> None:
    range_ = found(f"in the last {count} {unit}s", now).range

    length = range_.end.timestamp() - range_.start.timestamp()
    assert length <= count * SECONDS[unit] + CLOCK_CHANGE_S * (unit not in {"minute", "hour"}) + 1


@given(count=st.integers(1, 500), unit=st.sampled_from(["hour", "day", "week", "month"]), now=nows)
def test_so_many_units_ago_is_one_unit_that_holds_the_moment(
    count: int, unit: str, now: datetime
) -> None:
    range_ = found(f"{count} {unit}s ago", now).range

    length = range_.end.timestamp() - range_.start.timestamp()
    assert length <= SECONDS[unit] + CLOCK_CHANGE_S
    if unit in {"day", "week"}:
        then = now.replace(fold=0) - timedelta(days=count * (7 if unit == "week" else 1))
        assert range_.start.date() <= then.date() <= range_.end.date()


@pytest.mark.parametrize(
    "unit", ["may ", "a day and ", "1", "1.", "3-", "from 3 to ", "morning of ", "a'", "the ", " "]
)
def test_a_hundred_thousand_characters_do_not_keep_anybody_waiting(unit: str) -> None:
    with computing_at_most(20):
        assert find_time(unit * (100_000 // len(unit)), now=NOW) is None


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert found("x " * 1_900 + "yesterday").rest.endswith("x")
    assert find_time("x " * 2_100 + "yesterday", now=NOW) is None


def test_a_time_at_the_front_of_a_long_text_is_found() -> None:
    assert found("yesterday " + "x" * 100_000).span == (0, 9)


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("meeting yesterday and today", "from 14 November 2026 to 15 November 2026"),
        ("march 2026 vs april 2026", "from 1 March 2026 to 30 April 2026"),
        ("on 3 May 2026, 5 May 2026 or 9 May 2026", "from 3 May 2026 to 9 May 2026"),
    ],
)
def test_times_that_are_listed_are_taken_from_the_first_to_the_last(
    text: str, understood: str
) -> None:
    found = find_time(text, now=datetime(2026, 11, 15, 12, tzinfo=UTC))

    assert found is not None
    assert describe(found.range) == understood
