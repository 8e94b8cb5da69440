"""Read short notes as statements, and tell which of two no longer holds. Pure.

"The port of the API is 8080" says of the topic {port, api} that it has the value 8080. A later note
with the same topic and another value supersedes it, if the topic is one that has a single value at
a time. What is not plainly so is left alone: a list, an opinion, a plan, another subject. To keep
two notes that contradict each other does less harm than to distrust one that is true.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

ValueKind: TypeAlias = Literal["date", "number", "name", "words"]

_WORD: Final = re.compile(r"[^\W_]+(?:[.:/@-][^\W_]+)*", re.UNICODE)

_MAX_CHARS: Final = 240
_MAX_VALUE_WORDS: Final = 8
_MAX_TOPIC_WORDS: Final = 8

# What has one value at a time. Of other topics a note must say itself that something has changed.
_ATTRIBUTES: Final = frozenset(
    _WORD.findall("""
    address age alias allowance apartment author balance bank birthday blood boss branch
    budget bucket capacity capital captain car ceo certificate chair channel city client code
    color commit compiler condition contact cost country coach course cron currency database
    date day deadline default dentist department depth desk destination diet director doctor
    domain drink due duration editor email employer encoding endpoint engine expiry extension
    fare favorite fee file floor folder font format framework frequency gate goal grade guide
    gym head height host hostname hotel hour id image instructor insurer interval ip job key
    landlord language laptop lawyer lead leader length level library license limit linter
    location login longitude latitude mailbox maintainer major manager maximum mechanic mentor
    minimum model mode name nickname nurse number office operator os owner package pace parser
    partner password path payday person phone physician pin pipeline plan planner platform
    playlist policy port position postcode president price priority producer profession
    professor program protocol provider quota rank rate rating recipient region registrar
    registry release rent repository resolution responsible retention role room route runtime
    salary schedule school score seat secretary server severity shell shift shoe size slot
    speaker speed sponsor stage start status step stylist subject subscription supervisor
    supplier surname target tariff teacher team temperature term theme therapist threshold
    tier time timeout timezone title token topic trainer treasurer ttl tutor type url username
    value vendor venue version voltage volume weight wifi window zip zone
    """)
)
# Of these people have several, and each is told of by itself.
_SEVERAL: Final = frozenset(
    _WORD.findall("""
    aunt bicycle book brother bug cat child colleague cousin daughter dependency dog employee
    example feature fish friend grandchild hobby idea interest issue item kid member movie
    nephew neighbor niece option pet plant problem question reason risk rule sister skill son
    song student task thing tip uncle
    """)
)
_SAME: Final = {
    "colour": "color",
    "favourite": "favorite",
    "db": "database",
    "telephone": "phone",
    "e-mail": "email",
    "licence": "license",
    "boss": "manager",
    "repo": "repository",
    "me": "i",
    "my": "i",
    "i": "i",
    "myself": "i",
}
_LEFT_OUT: Final = frozenset(
    _WORD.findall("""
    a an the of for in on at to by with from our we us s current currently new latest now this
    these is are its their his her has have had been just
    """)
)
# What a thing is may be said or not: the search service, or just search.
_CARRIERS: Final = frozenset(["api", "app", "library", "project", "service", "system", "team"])
# By what was done to it, what has changed.
_VERSIONED: Final = re.compile(r"\b(?:upgraded|downgraded|bumped|updated)\b", re.IGNORECASE)
_OTHER_TOPIC: Final = frozenset(
    _WORD.findall("""
    old former previous original originally last next another other each every some any all
    most both many several few no none one two three it that he she they there what which who
    whose here you your if when while because not never nor once yesterday today tomorrow
    tonight than also first second third fourth alternative alternate extra additional and or
    but so m ve re ll d t really noticed found
    """)
)

# Several sentences, questions, and what was cut out of a list or a program.
_NO_SENTENCE: Final = re.compile(r"[.!?;] |[?;,{]$|^(?:\W|\d+[.)])|[{}<>=`]")
_HEDGED: Final = re.compile(
    r"\b(?:think|thinks|thought|believe|believes|guess|guesses|feel|feels|hope|hopes|wish|wishes|"
    r"maybe|perhaps|probably|possibly|likely|might|may be|could|should|would|will|shall|can|must|"
    r"wants?|wanted|plans?|planning|planned|consider(?:s|ing|ed)?|suppose[ds]?|propose[ds]?|"
    r"suggest(?:s|ed)?|if|unless|whether|rumou?rs?|heard|seems?|looks like|apparently|opinion|"
    r"prefer(?:s|red)?|like[sd]?|loves?|hates?|sometimes|often|usually|occasionally|also|too|"
    r"as well|"
    r"additionally|another|besides|one of|some of|among|for example|e\.g\.|such as|example|imagine|"
    r"pretend|dream(?:s|ed|t)?|joke[ds]?|almost|nearly|tr(?:y|ies|ied)|going to|about to|"
    r"ask(?:s|ed)?|"
    r"not|never|n't|today|tonight|tomorrow|yesterday|except|only when|in tests?|locally)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_PLAN_TOPIC: Final = re.compile(
    r"\b(?:the|our|my|\w+['\u2019]s)(?: \w+){0,2} plan (?:is|changed)\b", re.IGNORECASE
)
_SPEAKER: Final = re.compile(r"(?P<who>[A-Za-z][\w .-]{0,30}): +(?=\S)")
_LEAD_IN: Final = re.compile(
    r"(?:(?:quick |small |an? )?(?P<update>update|correction|change|changed|edit|news)\b"
    r"[^:,]{0,20}[:,] +"
    r"|(?P<since>as of|since|effective|starting|from) [\w ,]{2,24}?(?: on)?, +"
    r"|(?P<plain>fyi|note|reminder|btw|for the record|remember|please note)(?: that)?[:,]? +"
    r"|(?P<actually>actually|heads up|these days|by now|in the meantime|meanwhile),? +)",
    re.IGNORECASE,
)
_TAIL: Final = re.compile(
    r"(?:,? (?:because|since|so|after|as|which|who|when|while|but|until|starting|effective|per|"
    r"thanks to|due to|following|according to|again|anymore|going forward|from now on|these days|"
    r"for now|already|at last|finally)\b.*|, (?:and|not|up|down|was|formerly|previously|it)\b.*"
    r"| \(.*\)| [-\u2013\u2014] .*)$",
    re.IGNORECASE,
)
_NOW: Final = re.compile(
    r"\b(?:now|currently|no longer|anymore|these days|from now on|instead|as of|at present|"
    r"nowadays|meanwhile)\b",
    re.IGNORECASE,
)
_BE: Final = r"(?:has been|have been|is|are|'s|\u2019s)"
_DONE: Final = (
    r"(?:changed|moved|switched|migrated|updated|renamed|bumped|raised|lowered|increased|reduced|"
    r"decreased|cut|postponed|pushed|pushed back|brought forward|rescheduled|extended|shortened|"
    r"upgraded|downgraded|reassigned|relocated|transferred|converted|reset|adjusted|shifted|"
    r"set|went up|went down|rose|dropped|fell|grew|doubled|halved|improved|corrected|swapped)"
)
_HELPERS: Final = r"(?:(?:has|have|had|was|were|is|are|got|been|just|recently|now|since|then) )*"
_DET: Final = r"(?:the|our|my|\w+['\u2019]s) "
_FROM: Final = r"(?: (?:from|away from) (?P<old>.+?))?"
_FORMS: Final = tuple(
    (name, re.compile(form, re.IGNORECASE))
    for name, form in (
        # We moved the standup from nine to ten.
        (
            "changed",
            rf"(?:we|i|they|\w+|the team)(?:['\u2019]ve| have| has)?(?: just| recently)? {_DONE} "
            rf"(?P<topic>{_DET}.+?){_FROM} (?:to|into|onto) (?P<value>.+)",
        ),
        # We switched from Jenkins to Buildkite for the nightly builds.
        (
            "changed",
            rf"(?:we|i|they|the team)(?:['\u2019]ve| have)?(?: just| recently)? "
            rf"(?:switched|moved|migrated|changed|went){_FROM} (?:over )?to (?P<value>.+?) "
            r"(?:for|as) (?P<topic>.+)",
        ),
        # Ben replaced Ada as team lead. Ben took over from Ada as team lead.
        (
            "changed",
            r"(?P<value>[\w .'-]+?) (?:has |have )?(?:replaced|replaces|succeeded|succeeds|"
            r"took over from|takes over from) (?P<old>.+?) as (?P<topic>.+)",
        ),
        (
            "changed",
            r"(?P<value>[\w .'-]+?) (?:has |have )?(?:took over|takes over|taken over|stepped in|"
            r"became|has become) (?:as )?(?P<topic>(?:the |our |my |\w+['\u2019]s ).+)",
        ),
        # Ada moved from Oslo to Bergen; the deadline was pushed to May 3.
        (
            "live",
            rf"(?P<topic>(?:i|[A-Z]\w+(?: [A-Z]\w+)?)) {_HELPERS}(?:moved|relocated){_FROM} to "
            r"(?P<value>.+)",
        ),
        ("changed", rf"(?P<topic>.+?) {_HELPERS}{_DONE}{_FROM} (?:to|into|onto) (?P<value>.+)"),
        # We use Ruff instead of Flake8 for the checks.
        (
            "changed",
            r"(?:we|i|the team) (?:now |currently )?(?:use|are using|am using|have|run|go with) "
            r"(?P<value>.+?) (?:instead of|in place of|rather than) (?P<old>.+?) (?:for|as) "
            r"(?P<topic>.+)",
        ),
        (
            "changed",
            r"(?:we|i|the team) (?:now use|now have|are now using|am now using|now run) "
            r"(?P<value>.+?) (?:for|as) (?P<topic>.+)",
        ),
        # What has a verb of its own.
        (
            "live",
            r"(?P<topic>.+?) (?:now |currently )?(?:lives?|is living|am living|resides?|is based"
            r"|am based|are based) (?:now )?in (?P<value>.+)",
        ),
        (
            "work",
            r"(?P<topic>.+?) (?:now |currently |just |has |have )*(?:works? (?:at|for)|is working "
            r"(?:at|for)|is employed (?:at|by)|joined|started (?:working )?at) (?P<value>.+)",
        ),
        ("job", r"(?P<topic>.+?) (?:now |currently )?(?:works? as|is working as) (?P<value>.+)"),
        ("report", r"(?P<topic>.+?) (?:now |currently )?reports? (?:directly )?to (?P<value>.+)"),
        ("cost", r"(?P<topic>.+?) (?:now |currently )?costs? (?:now )?(?P<value>.+)"),
        (
            "run",
            r"(?P<topic>.+?) (?:now |currently )?(?:runs on|is hosted (?:on|at|by|in)|is deployed "
            r"(?:on|to|in)|is running on|is served from|lives on) (?P<value>.+)",
        ),
        ("listen", r"(?P<topic>.+?) (?:now |currently )?(?:listens|is listening) on (?P<value>.+)"),
        ("weigh", r"(?P<topic>.+?) (?:now |currently )?weighs? (?P<value>.+)"),
        ("study", r"(?P<topic>.+?) (?:now |currently )?(?:studies|is studying) at (?P<value>.+)"),
        (
            "begin",
            r"(?P<topic>.+?) (?:now |currently )?(?:starts?|begins?|takes place|opens?) "
            r"(?:now )?(?:at|on|in) (?P<value>.+)",
        ),
        (
            "close",
            r"(?P<topic>.+?) (?:now )?(?:closes|ends|expires) (?:at|on|in) (?P<value>.+)",
        ),
        # Ben is now the team lead.
        (
            "be",
            r"(?P<value>[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){0,3}) is now "
            r"(?P<topic>(?:the|our|my|[A-Z]\w+['\u2019]s) .+)",
        ),
        ("be", rf"(?P<topic>.+?) {_BE} (?P<value>.+)"),
        ("field", r"(?P<topic>[\w' -]{2,60}): (?P<value>\S+(?: \S+){0,3})"),
    )
)
_VALUE_START: Final = re.compile(
    r"(?:now|currently|presently|set|fixed|due|scheduled|planned|held|called|named|located|for|to|"
    r"at|on|in|by|is|the|(?:about|roughly|exactly) (?=\d)|version|just|only|up|down)\b[ ,]*",
    re.IGNORECASE,
)
_NO_VALUE: Final = re.compile(
    r"(?:an?|about|one|part|very|so|more|less|most|being|good|bad|great|nice|fine|slow|fast|too|still|"
    r"important|easy|hard|difficult|ready|available|always|only|unknown|unclear|how|why|what|where|"
    r"when|that|who|\w+ing)\b",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|"
    r"july|august|september|october|november|december|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"\d{1,2}:\d\d|\d{1,2} ?[ap]\.?m|\d{4}-\d\d(?:-\d\d)?|noon|midnight)\b",
    re.IGNORECASE,
)
_SINGLE: Final = frozenset(
    _WORD.findall("live work job report cost run listen weigh study begin close")
)
# What says which of several is meant.
_WHICH: Final = frozenset(
    ["default", "favorite", "main", "preferred", "primary", "regular", "usual"]
)
# What may be told of as a change alone: the meeting was moved to ten.
_CHANGEABLE: Final = frozenset(["be", "begin", "close", "cost", "listen", "run"])
_FORMERLY: Final = re.compile(
    r"\b(?:used to|originally|initially|previously|formerly|at first|in the past|back then|before|"
    r"earlier|prior to|former|previous|original|in the beginning|to begin with|at the outset|"
    r"until|no longer|once upon|beforehand|in those days|(?<!how )old|replaced|superseded|"
    r"outdated)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """That a topic has a value."""

    topic: frozenset[str]
    verb: str
    """`be`, `changed`, or what is said of it: `live`, `work`, `cost`."""

    value: tuple[str, ...]
    kind: ValueKind
    old: tuple[str, ...] = ()
    """The value that it had, if the note says so."""

    is_update: bool = False
    """Whether the note says that it was otherwise before."""

    has_one_value: bool = False
    """Whether the topic is something that has one value at a time."""


def read_statement(text: str) -> Statement | None:
    """Return what a note says of one topic; None if it says anything else, or more than that."""
    text = " ".join(text.split()).rstrip(" .!")
    if not text or len(text) > _MAX_CHARS or _NO_SENTENCE.search(text):
        return None
    text, is_update = _without_lead_in(text)
    if speaker := _SPEAKER.match(text):
        rest, says_so = _without_lead_in(text[speaker.end() :])
        said = _read(rest, is_update=is_update or says_so, speaker=speaker["who"])
        if said is not None:
            return said
    return _read(text, is_update=is_update)


def supersedes(new: Statement, old: Statement) -> bool:
    """Tell whether `old` no longer holds once `new` does, which is the later one."""
    if _is_same(new.value, old.value):
        return False
    if _names_what_was(new, old):
        return True
    if not (_is_same_topic(new.topic, old.topic) and _is_same_verb(new, old)):
        return False
    if new.old:
        return _is_same(new.old, old.value)
    is_sure = new.has_one_value or new.verb in _SINGLE or old.verb in _SINGLE
    if not _is_alike(new, old) or not (is_sure or new.is_update):
        return False
    if new.kind == "words" and not is_sure and new.verb != "changed":
        return False
    return len(new.topic) > 1 or new.is_update or new.verb in _SINGLE


def asks_about_then(query: str) -> bool:
    """Tell whether a query asks in words for what held before."""
    return _FORMERLY.search(query) is not None


def _without_lead_in(text: str) -> tuple[str, bool]:
    found = _LEAD_IN.match(text)
    if found is None:
        return text, False
    return text[found.end() :], found["plain"] is None


def _read(text: str, *, is_update: bool, speaker: str = "") -> Statement | None:
    hedged = _HEDGED.search(_PLAN_TOPIC.sub("", text))
    if hedged and hedged.group().lower() != "not":
        return None
    for verb, form in _FORMS:
        found = form.fullmatch(text)
        if found is not None:
            parts = found.groupdict()
            if _VERSIONED.search(text) and verb == "changed":
                parts["topic"] = f"{parts['topic']} version"
            made = _statement(parts, verb, is_update=is_update or _says_now(text), speaker=speaker)
            if made is not None:
                return made
    return None


def _statement(
    parts: dict[str, str | None], verb: str, *, is_update: bool, speaker: str
) -> Statement | None:
    value, about = _split_purpose(_without_tail(parts["value"] or ""))
    about = f"{parts['topic']} for {about}" if about else parts["topic"] or ""
    topic = _topic(about, speaker)
    words = _value(value)
    old = _value(parts.get("old") or "") or ()
    has_one_value = _has_one_value(about)
    if topic is None or words is None or (verb == "field" and not has_one_value):
        return None
    return Statement(
        topic=topic,
        verb="be" if verb == "field" else verb,
        value=words,
        kind=_kind(value),
        old=old,
        is_update=is_update or verb == "changed" or bool(old),
        has_one_value=has_one_value,
    )


def _says_now(text: str) -> bool:
    return _NOW.search(text) is not None


def _without_tail(value: str) -> str:
    value = re.sub(r",? (?:instead of|rather than|in place of) .*$", "", value, flags=re.IGNORECASE)
    value = _TAIL.sub("", value)
    return re.sub(r"\b(?:now|instead|currently)$", "", value.strip(), flags=re.IGNORECASE).strip(
        " ,."
    )


def _split_purpose(value: str) -> tuple[str, str]:
    """Part "May 3 for the launch" into the value and what else the topic is."""
    found = re.fullmatch(r"(.+?) for ((?:the|our|my|\w+['\u2019]s) .+)", value, re.IGNORECASE)
    return (found[1], found[2]) if found else (value, "")


def _topic(text: str, speaker: str) -> frozenset[str] | None:
    text = re.sub(r"['\u2019]s\b", " ", text.lower()).replace("\u2019", "'")
    words = [_SAME.get(word, word) for word in _WORD.findall(text)]
    if not _OTHER_TOPIC.isdisjoint(words):
        return None
    stems = [_singular(word) for word in words if word not in _LEFT_OUT]
    who = "_".join(speaker.lower().split())
    topic = frozenset(who if stem == "i" and who else _SAME.get(stem, stem) for stem in stems)
    return topic if 0 < len(topic) <= _MAX_TOPIC_WORDS else None


def _has_one_value(topic: str) -> bool:
    """Tell it by the word that stands for the thing itself: the color of the door, Ada's color."""
    head = re.split(r" (?:of|for|in|on|at|with|from) ", topic.lower(), maxsplit=1)[0]
    words = [_SAME.get(each, each) for each in map(_singular, _WORD.findall(head))]
    if not _SEVERAL.isdisjoint(words):
        return False
    return bool(words) and (words[-1] in _ATTRIBUTES or "favorite" in words)


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-3] + "y" if word.endswith("ies") else word[:-1]
    return word


def _value(text: str) -> tuple[str, ...] | None:
    """Return the words of a value; None if it is no single one."""
    while (start := _VALUE_START.match(text)) and start.end() < len(text):
        text = text[start.end() :]
    words = tuple(_WORD.findall(text.lower()))
    is_list = re.search(r"\b(?:and|or)\b|&|, (?!\d|[A-Z])", text) is not None
    if not words or len(words) > _MAX_VALUE_WORDS or is_list or _NO_VALUE.match(text):
        return None
    return words


def _kind(value: str) -> ValueKind:
    while (start := _VALUE_START.match(value)) and start.end() < len(value):
        value = value[start.end() :]
    if _DATE.search(value):
        return "date"
    if any(char.isdigit() for char in value):
        return "number"
    return "name" if value[:1].isupper() else "words"


def _names_what_was(new: Statement, old: Statement) -> bool:
    """Whether `new` leaves out what has changed, since it says from what: Ada switched to tea."""
    left_out = old.topic - new.topic
    return (
        (new.verb, old.verb) == ("changed", "be")
        and new.old == old.value
        and old.has_one_value
        and new.topic < old.topic
        and left_out <= _ATTRIBUTES | _WHICH
    )


def _is_same_topic(one: frozenset[str], other: frozenset[str]) -> bool:
    if one == other:
        return True
    more, less = (one, other) if len(one) > len(other) else (other, one)
    return less < more and more - less <= _CARRIERS and len(less - _CARRIERS) > 1


def _is_same_verb(new: Statement, old: Statement) -> bool:
    verbs = {new.verb, old.verb}
    if len(verbs) == 1 or verbs <= {"be", "begin"}:
        return True
    return "changed" in verbs and bool(verbs & _CHANGEABLE)


def _is_same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two values are one, said with more or fewer words."""
    return set(one) <= set(other) or set(other) <= set(one)


def _is_alike(new: Statement, old: Statement) -> bool:
    """Whether two values are of one kind: a day, a number of the same things, a name."""
    if new.kind != old.kind:
        return False
    units, others = _units(new.value), _units(old.value)
    return new.kind != "number" or units <= others or others <= units


def _units(value: tuple[str, ...]) -> set[str]:
    return {_singular(word) for word in value if word.isalpha()}
