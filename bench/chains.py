"""Chains of notes that update each other, and notes that look like updates and are not.

Derived from templates, always the same for a seed. Of each chain the questions are known whose
answer is what holds now, and those whose answer is what held then.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

NOW: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Told:
    """A note of the set, and when it was told; `chain` is None for one that updates nothing."""

    text: str
    created: float
    chain: int | None
    place: int = 0


@dataclass(slots=True)
class Chain:
    """Values of one thing in the order in which they held, with questions about now and then."""

    number: int
    notes: list[Told]
    now: list[str]
    then: list[tuple[str, int]]
    """A question, and the place in the chain of what it asks for."""

    others: list[Told] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that may be known of a subject."""

    subjects: str
    values: str
    first: Sequence[str]
    later: Sequence[str]
    now: Sequence[str]
    then: Sequence[str]
    others: Sequence[str]


PEOPLE: Final = (
    "Ada Boris Chen Dalia Emil Fatima Goran Hana Ivo Jutta Kofi Lena Mira Nils Olga Pavel Quinn "
    "Rosa Samir Tove Uma Viktor Wanda Xenia Yusuf Zoe Amara Bruno Carla Dmitri Elsa Farid Greta "
    "Hugo Ines Jonas Katya Leif Marta Noor"
)
SERVICES: Final = (
    "billing login search export import cache queue scheduler parser gateway invoice report backup "
    "mailer webhook session upload thumbnail translation calendar checkout refund catalogue sensor "
    "firmware compiler notebook telemetry metrics audit ingest router archive payment profile feed"
)
GROUPS: Final = (
    "platform mobile design security growth research support finance legal data infra docs quality "
    "hardware network release hiring onboarding marketing sales"
)
CITIES: Final = (
    "Lisbon|Oslo|Nairobi|Lima|Kyoto|Quito|Riga|Cairo|Perth|Tunis|Bern|Porto|Hanoi|Turin|Gdansk|"
    "Malaga|Izmir|Leeds|Ghent|Bogota|Tartu|Split|Graz|Cork"
)
NAMES: Final = PEOPLE.replace(" ", "|")
COMPANIES: Final = (
    "Northwind|Acme Robotics|Globex|Initech|Umbra Labs|Vandelay|Hooli|Stark Foods|Wayne Optics|"
    "Contoso|Fabrikam|Tyrell|Cyberdyne|Soylent|Monarch|Oscorp"
)
DATES: Final = "March 3|April 17|May 9|June 21|July 2|August 30|September 12|October 4|December 1"
TIMES: Final = "9:30|10:00|11:15|13:00|14:45|16:30|8:45|15:00"
PORTS: Final = "8080|9090|5432|6379|3000|4443|7001|8443|5050|9200"
DATABASES: Final = "PostgreSQL|MySQL|SQLite|MongoDB|CockroachDB|MariaDB|Redis|DynamoDB"
HOSTS: Final = "Hetzner|Azure|Linode|Fly.io|Heroku|Scaleway|Render|Vultr"
AMOUNTS: Final = "1,200 euros|1,450 euros|1,600 euros|980 euros|2,100 euros|1,750 euros"
LIMITS: Final = "100 requests|250 requests|400 requests|1,000 requests|60 requests"
VERSIONS: Final = "2.4.1|3.0.0|3.2.5|4.1.0|4.7.2|5.0.3"
COLORS: Final = "blue|green|orange|purple|yellow|red|turquoise"
BUDGETS: Final = "40,000 dollars|55,000 dollars|72,000 dollars|90,000 dollars|31,000 dollars"
DRINKS: Final = "green tea|black coffee|oat latte|lemonade|ginger ale|cold brew"
ROOMS: Final = "room 4|room 12|room 207|room 9|room 31|room 118"

KINDS: Final = (
    Kind(
        PEOPLE,
        CITIES,
        ("{s} lives in {v}.", "{s} is based in {v}.", "{s} currently lives in {v}"),
        (
            "{s} moved to {v}.",
            "{s} now lives in {v}.",
            "{s} has moved from {o} to {v}.",
            "{s} relocated to {v}.",
            "{s} lives in {v} now.",
        ),
        ("Where does {s} live?", "In which city does {s} live now?"),
        (
            "Where did {s} live before?",
            "Where did {s} live originally?",
            "In which city did {s} used to live?",
        ),
        (
            "{s} visited {x} with friends.",
            "{s} thinks {x} is lovely in spring.",
            "{s} would like to live in {x} one day.",
            "{t} lives in {x}.",
            "{s} was born in {x}.",
            "{s}'s sister lives in {x}.",
        ),
    ),
    Kind(
        PEOPLE,
        COMPANIES,
        ("{s} works at {v}.", "{s} works for {v}", "{s} is employed at {v}."),
        (
            "{s} joined {v}.",
            "{s} now works at {v}.",
            "{s} works for {v} now.",
            "As of this month, {s} works at {v}.",
        ),
        ("Where does {s} work?", "Which company does {s} work for?"),
        (
            "Where did {s} work before?",
            "Which company did {s} work for originally?",
            "What was {s}'s previous company?",
        ),
        (
            "{s} has an interview at {x} next week.",
            "{s}'s brother works at {x}.",
            "{t} works at {x}.",
            "{s} might join {x}.",
            "{s} buys everything from {x}.",
        ),
    ),
    Kind(
        SERVICES,
        PORTS,
        ("The {s} service listens on port {v}.", "The {s} service listens on {v}"),
        (
            "The {s} service now listens on port {v}.",
            "The {s} service listens on port {v}.",
            "Update: the {s} service listens on port {v}.",
        ),
        ("Which port does the {s} service listen on?", "On what port is the {s} service?"),
        (
            "Which port did the {s} service listen on before?",
            "Which port did the {s} service use originally?",
        ),
        (
            "The {s} admin page listens on port {x}.",
            "The {t} service listens on port {x}.",
            "We should have the {s} service listen on port {x}.",
            "The {s} service also listens on port {x}.",
            "In tests the {s} service listens on port {x}.",
        ),
    ),
    Kind(
        SERVICES,
        DATABASES,
        (
            "The {s} database is {v}.",
            "The {s} service's database is {v}.",
            "The database of the {s} service is {v}.",
        ),
        (
            "We migrated the {s} database from {o} to {v}.",
            "The {s} database is now {v}.",
            "The {s} database was switched from {o} to {v}.",
            "The {s} database moved to {v}.",
        ),
        ("Which database does {s} use?", "What is the {s} database?"),
        (
            "What was the {s} database before the migration?",
            "Which database did {s} use originally?",
            "Which database did {s} used to have?",
        ),
        (
            "The {s} team knows {x} well.",
            "The {t} database is {x}.",
            "{x} might be better for {s}.",
            "We use {x} for the {s} tests.",
            "The {s} backup database is {x}.",
        ),
    ),
    Kind(
        GROUPS,
        NAMES,
        ("The {s} team lead is {v}.", "The lead of the {s} team is {v}."),
        (
            "{v} is now the {s} team lead.",
            "{v} replaced {o} as {s} team lead.",
            "The {s} team lead is now {v}.",
            "{v} took over from {o} as lead of the {s} team.",
        ),
        ("Who leads the {s} team?", "Who is the {s} team lead?"),
        (
            "Who was the {s} team lead before?",
            "Who led the {s} team originally?",
            "Who used to be the {s} team lead?",
        ),
        (
            "{x} is on the {s} team.",
            "The {t} team lead is {x}.",
            "{x} would be a good {s} team lead.",
            "One of the {s} team's engineers is {x}.",
            "The {s} team's designer is {x}.",
        ),
    ),
    Kind(
        GROUPS,
        DATES,
        (
            "The deadline of the {s} project is {v}.",
            "The {s} project's deadline is {v}.",
            "The deadline for the {s} project is {v}",
        ),
        (
            "The deadline of the {s} project moved to {v}.",
            "The {s} project's deadline was pushed back to {v}.",
            "The {s} project deadline is now {v}.",
            "We extended the deadline of the {s} project from {o} to {v}.",
        ),
        ("When is the deadline of the {s} project?", "What is the {s} project's deadline?"),
        (
            "What was the deadline of the {s} project before it moved?",
            "What was the original deadline of the {s} project?",
        ),
        (
            "The {s} project's kickoff is {x}.",
            "The deadline of the {t} project is {x}.",
            "I think the deadline of the {s} project is {x}.",
            "The deadline of the {s} project should be {x}.",
            "The {s} review is on {x}.",
        ),
    ),
    Kind(
        GROUPS,
        TIMES,
        ("The {s} standup is at {v}.", "The {s} standup starts at {v}."),
        (
            "The {s} standup moved to {v}.",
            "The {s} standup is now at {v}.",
            "We moved the {s} standup from {o} to {v}.",
            "From Monday on, the {s} standup is at {v}.",
        ),
        ("When is the {s} standup?", "At what time does the {s} standup start?"),
        (
            "When was the {s} standup before?",
            "When did the {s} standup used to be?",
            "At what time was the {s} standup originally?",
        ),
        (
            "The {s} retro is at {x}.",
            "The {t} standup is at {x}.",
            "{x} is too early for the {s} standup.",
            "The {s} standup took until {x}.",
            "Can the {s} standup start at {x}?",
        ),
    ),
    Kind(
        SERVICES,
        HOSTS,
        ("The {s} service runs on {v}.", "The {s} service is hosted on {v}."),
        (
            "The {s} service moved from {o} to {v}.",
            "The {s} service now runs on {v}.",
            "The {s} service was migrated to {v}.",
        ),
        ("Where is the {s} service hosted?", "What does the {s} service run on?"),
        (
            "Where was the {s} service hosted before the move?",
            "What did the {s} service run on originally?",
        ),
        (
            "The {s} logs are kept on {x}.",
            "The {t} service runs on {x}.",
            "{x} is cheaper for the {s} service.",
            "We tried {x} for the {s} service.",
        ),
    ),
    Kind(
        PEOPLE,
        AMOUNTS,
        ("{s}'s rent is {v}.", "The rent of {s} is {v}.", "{s}'s rent is {v} a month"),
        (
            "{s}'s rent went up to {v}.",
            "{s}'s rent is now {v}.",
            "{s}'s rent was raised from {o} to {v}.",
        ),
        ("How much is {s}'s rent?", "What rent does {s} pay?"),
        ("How much was {s}'s rent before?", "What was {s}'s original rent?"),
        (
            "{s}'s bicycle cost {x}.",
            "{t}'s rent is {x}.",
            "{s}'s rent could be {x} next year.",
            "{s} finds a rent of {x} absurd.",
            "{s}'s bonus was {x}.",
        ),
    ),
    Kind(
        SERVICES,
        LIMITS,
        ("The rate limit of the {s} API is {v}.", "The {s} API's rate limit is {v}."),
        (
            "The rate limit of the {s} API was raised to {v}.",
            "The {s} API rate limit is now {v}.",
            "The {s} API's rate limit changed from {o} to {v}.",
            "Correction: the rate limit of the {s} API is {v}.",
        ),
        ("What is the rate limit of the {s} API?", "How many requests does the {s} API allow?"),
        (
            "What was the rate limit of the {s} API before?",
            "What was the {s} API's original rate limit?",
        ),
        (
            "The {s} API got {x} in the load test.",
            "The rate limit of the {t} API is {x}.",
            "A rate limit of {x} would suit the {s} API.",
            "The burst limit of the {s} API is {x}.",
        ),
    ),
    Kind(
        SERVICES,
        VERSIONS,
        (
            "The {s} library's version is {v}.",
            "The version of the {s} library is {v}.",
            "{s} library version: {v}",
        ),
        (
            "The {s} library was upgraded to {v}.",
            "The version of the {s} library is now {v}.",
            "We bumped the {s} library from {o} to {v}.",
            "{s} library version: {v}",
        ),
        ("Which version is the {s} library?", "What is the version of the {s} library?"),
        (
            "Which version was the {s} library before the upgrade?",
            "What was the original version of the {s} library?",
        ),
        (
            "The {s} library's changelog mentions {x}.",
            "The version of the {t} library is {x}.",
            "Version {x} of the {s} library has a bug.",
            "The {s} library needs Python {x}.",
        ),
    ),
    Kind(
        PEOPLE,
        COLORS,
        ("{s}'s favourite color is {v}.", "The favourite colour of {s} is {v}."),
        (
            "{s}'s favourite color is now {v}.",
            "{s}'s favourite colour changed to {v}.",
            "These days {s}'s favourite color is {v}.",
        ),
        ("What is {s}'s favourite color?", "Which color does {s} like best?"),
        ("What was {s}'s favourite color before?", "Which color used to be {s}'s favourite?"),
        (
            "{s}'s car is {x}.",
            "{t}'s favourite color is {x}.",
            "{s} painted the fence {x}.",
            "{s} says {x} is dull.",
        ),
    ),
    Kind(
        GROUPS,
        BUDGETS,
        ("The {s} budget is {v}.", "The budget of the {s} team is {v}."),
        (
            "The {s} team budget was cut to {v}.",
            "The budget of the {s} team is now {v}.",
            "The {s} team's budget rose from {o} to {v}.",
        ),
        ("What is the {s} team's budget?", "How large is the budget of the {s} team?"),
        ("What was the {s} team's budget before?", "What was the original budget of the {s} team?"),
        (
            "The {s} team spent {x} on travel.",
            "The budget of the {t} team is {x}.",
            "The {s} team asked for {x}.",
            "The travel budget of the {s} team is {x}.",
        ),
    ),
    Kind(
        PEOPLE,
        DRINKS,
        ("{s}'s usual drink is {v}.", "{s} usually orders {v}."),
        (
            "{s} switched from {o} to {v}.",
            "{s}'s usual drink is now {v}.",
            "{s} gave up {o} and drinks {v} instead.",
        ),
        ("What does {s} usually drink?", "What is {s}'s usual drink?"),
        ("What did {s} usually drink before?", "What was {s}'s usual drink originally?"),
        ("{s} spilled {x} on the desk.", "{t}'s usual drink is {x}.", "{s} hates {x}."),
    ),
    Kind(
        GROUPS,
        ROOMS,
        ("The {s} meeting is in {v}.", "The {s} meeting takes place in {v}."),
        (
            "The {s} meeting moved from {o} to {v}.",
            "The {s} meeting is now in {v}.",
            "The {s} meeting was relocated to {v}.",
        ),
        ("Where is the {s} meeting?", "In which room is the {s} meeting?"),
        ("Where was the {s} meeting before?", "In which room did the {s} meeting used to be?"),
        (
            "The {s} printer is in {x}.",
            "The {t} meeting is in {x}.",
            "{x} is too small for the {s} team.",
            "The {s} workshop is in {x}.",
        ),
    ),
)
LISTS: Final = (
    ("{s}'s dog is {a}.", "{s}'s dog is {b}.", "Rex|Bello|Luna|Milo|Kira"),
    ("{s}'s brother is {a}.", "{s}'s brother is {b}.", NAMES),
    ("{s} speaks {a}.", "{s} speaks {b}.", "French|Polish|Hindi|Dutch|Greek"),
    ("{s} likes {a}.", "{s} likes {b}.", "jazz|chess|sushi|hiking|opera"),
    ("{s} read {a}.", "{s} read {b}.", "Dune|Emma|Ulysses|Solaris|Beloved"),
    ("{s} met {a} in the office.", "{s} met {b} in the office.", NAMES),
    ("A member of the {g} team is {a}.", "A member of the {g} team is {b}.", NAMES),
    ("The {g} team uses {a}.", "The {g} team uses {b}.", DATABASES),
    ("The {g} release took 20 minutes.", "The {g} release took 35 minutes.", "x|y"),
    ("The {g} dashboard is slow.", "The {g} dashboard is useful.", "x|y"),
    ("{s} is tired.", "{s} is a nurse.", "x|y"),
    ("{s} flew to {a}.", "{s} flew to {b}.", CITIES),
    ("{s}'s meeting with {a} is on Monday.", "{s}'s meeting with {b} is on Friday.", NAMES),
    ("{s} paid 20 euros for lunch.", "{s} paid 34 euros for lunch.", "x|y"),
    ("The {g} ticket 14 is about {a}.", "The {g} ticket 15 is about {b}.", DATABASES),
)


def chains(count: int, *, seed: str = "chains") -> Iterator[Chain]:
    """Yield so many chains; no two are about the same thing."""
    choose = random.Random(seed)
    free = [(kind, subject) for kind in KINDS for subject in kind.subjects.split()]
    choose.shuffle(free)
    for number, (kind, subject) in enumerate(free[:count]):
        yield _chain(number, kind, subject, choose)


def look_alikes(count: int, *, seed: str = "lists") -> Iterator[Told]:
    """Yield pairs of notes that resemble an update and are none: lists, opinions, events."""
    choose = random.Random(seed)
    for _ in range(count):
        one, two, values = choose.choice(LISTS)
        a, b = choose.sample(values.split("|"), 2)
        parts = {"s": choose.choice(PEOPLE.split()), "g": choose.choice(GROUPS.split())}
        age = choose.uniform(40, 200)
        yield Told(one.format(a=a, b=b, **parts), _ago(age), None)
        yield Told(two.format(a=a, b=b, **parts), _ago(age - 30), None)


def _chain(number: int, kind: Kind, subject: str, choose: random.Random) -> Chain:
    length = choose.choice((2, 2, 3))
    values = choose.sample(kind.values.split("|"), length + 2)
    ages = [245.0, 30.0] if length == 2 else [245.0, 120.0, 20.0]
    ages = [age + choose.uniform(-5, 5) for age in ages]
    other = choose.choice([each for each in kind.subjects.split() if each != subject])
    notes = []
    for place in range(length):
        form = choose.choice(kind.later if place else kind.first)
        old = values[place - 1] if place else ""
        text = form.format(s=subject, v=values[place], o=old)
        notes.append(Told(text, _ago(ages[place]), number, place))
    month = datetime.fromtimestamp(_ago((ages[0] + ages[1]) / 2), UTC).strftime("%B")
    before, first = length - 2, 0
    then = []
    for question in kind.then:
        place = first if "original" in question else before
        then.append((question.format(s=subject), place))
    named = choose.choice(kind.now).format(s=subject).rstrip("?")
    then.append((f"{named} in {month}?", first))
    others = [
        Told(form.format(s=subject, t=f"{other}", x=values[-1]), _ago(choose.uniform(2, 240)), None)
        for form in choose.sample(list(kind.others), min(3, len(kind.others)))
        if "{t}" not in form
    ]
    return Chain(number, notes, [each.format(s=subject) for each in kind.now], then, others)


def _ago(days: float) -> float:
    return NOW.timestamp() - days * DAY_S
