"""What can be wrong with one note by itself. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import count
from toolfold.memory.models import FindingKind, preview

FindPersonal: TypeAlias = Callable[[str], Iterable[tuple[str, int, int]]]
"""Finds secrets and personal data: the kind of each, where it begins and where it ends."""


class NoteFault(NamedTuple):
    """What is wrong, and what shows it."""

    kind: FindingKind
    evidence: str


_MAX_CHARS: Final = 20_000
_SHOWN_CHARS: Final = 60
_DAY_S: Final = 86_400.0
# So long after it was written, `tomorrow` means nothing any more.
_PAST_DAYS: Final = 45

# Words with which a text turns to whoever reads it, instead of telling something.
_INJECTION: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"\b(?:ignore|disregard|forget|override|bypass|do not follow|stop following)\b.{0,20}"
        r"\b(?:all|any|every|everything|previous|prior|above|earlier|preceding|your|system|these|those|safety)"
        r"\b.{0,30}\b(?:instructions?|prompts?|rules|guidelines|directives|guardrails|messages?|"
        r"context|told)\b",
        r"\b(?:ignore|disregard|forget|override|bypass) (?:the |my |its )?(?:instructions|prompt|"
        r"guardrails)\b",
        r"\b(?:new|updated|real|actual|hidden|secret|important) (?:system )?instructions?\s*"
        r"(?::|for (?:the|any|all) (?:ai|assistant|model|agent)s?)",
        r"\byou are (?:now|no longer)\b.{0,60}\b(?:ai|assistant|model|agent|mode|dan|unrestricted|"
        r"bound|restricted|admin|root|developer)\b",
        r"\b(?:act|behave|respond|pretend)\b.{0,20}\bas (?:if you|though you|an? (?:unrestricted|"
        r"unfiltered|jailbroken|different))\b",
        r"\b(?:do not|don't|never|without)\b.{0,12}\b(?:tell|telling|inform|informing|mention|"
        r"mentioning|reveal|revealing|alert|alerting|notify|notifying|warn)\b.{0,40}"
        r"\b(?:user|owner|human|anyone|operator|developer)s?\b",
        r"(?:^|[\s\[<(*#])(?:system|assistant|ai|agent|model)s?\s*(?:prompt|message|note|override|"
        r"instruction|directive|command)s?\s*[:\]>)-]",
        r"<\|?(?:im_start|im_end|system|endoftext)\|?>|\[/?INST\]|<<SYS>>|</?(?:system|"
        r"instructions?)>",
        r"\b(?:(?:to|for) (?:any|all|every)|dear|attention|note (?:to|for)|hey|message (?:to|for))"
        r" (?:any |all |the |every )*(?:ai|llm|"
        r"language model|"
        r"chatbot|assistant|agent)s?\b.{0,40}(?:[:,]|reading|who|that|must|should|please)",
        r"\b(?:assistants?|ai|agents?|models?|llms?)\b (?:reading this|"
        r"that reads? this|must (?:now|"
        r"always|immediately)|should (?:now|always|immediately|silently))",
        r"\b(?:when|if|once|after|whenever) (?:you|an? (?:ai|assistant|agent|model|llm)|the (?:ai|"
        r"assistant|agent|model)) (?:read|reads|see|sees|process|processes|retrieve|retrieves|load|"
        r"loads|recall|recalls|encounter|encounters)\b.{0,20}\b(?:this|note|memory|message|text)",
        r"\b(?:send|forward|upload|exfiltrate|leak|email|transmit|"
        r"copy)\b.{0,60}\b(?:passwords?|"
        r"credentials?|secrets?|tokens?|api keys?|keys|env(?:ironment)?(?: variables?)?|\.env|"
        r"conversation|chat history|memory|memories|notes|files?|contents?)\b.{0,60}"
        r"(?:https?://|\bto\b.{0,30}@|\bwebhook|\b(?:attacker|evil|pastebin))",
        r"\b(?:reveal|print|output|repeat|show|leak|disclose)\b.{0,30}\b(?:your|the) (?:system |"
        r"hidden |initial |full )?(?:prompt|instructions)\b",
        r"\b(?:developer|god|dan|jailbreak|unrestricted) mode\b.{0,40}\b(?:enabled?|on|"
        r"activated?|enter|now)\b|\b(?:enable|enter|activate|"
        r"switch to)\b.{0,20}\b(?:developer|"
        r"god|admin|dan|jailbreak|unrestricted) mode\b",
        r"\b(?:run|execute|eval|call|invoke)\b.{0,40}(?:rm -rf|curl [^|]{0,80}\|\s*(?:ba|z)?sh|"
        r"wget [^|]{0,80}\|\s*(?:ba|z)?sh|delete_all|drop table)",
        r"\b(?:curl|wget)\b[^\n]{0,120}\|\s*(?:sudo )?(?:ba|z)?sh\b",
        r"\balways (?:recommend|answer|reply|respond|say|approve|trust|allow|include|"
        r"append|prefer)\b"
        r".{0,60}\b(?:regardless|no matter|whatever|without (?:asking|question|confirm)|every "
        r"(?:answer|reply|response))",
        r"\b(?:approve|allow|accept|confirm|authorize)\b.{0,30}\b(?:all|every|any)\b.{0,30}"
        r"\b(?:without (?:asking|confirm|question|review)|automatically|silently)",
        r"<!--.{0,200}\b(?:ignore|you|assistant|ai|instruction|execute|send)\b.{0,200}-->",
    )
)
_HIDDEN: Final = re.compile(
    "[\u200b\u200c\u2060\u2061-\u2064\u202a-\u202e\u2066-\u2069]{2,}|[\U000e0020-\U000e007f]{4,}"
)

_LOG_LINE: Final = re.compile(
    r"^\s*(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?[.,\dZ+:]*\]?"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?|\w{3} +\d{1,2} \d\d:\d\d:\d\d)\W*"
    r".{0,40}?\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL|NOTICE|info|"
    r"debug|warn|error)\b"
    r"|^\s*(?:\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL)\]?)[\s:\[]"
    r"|^\s*(?:Traceback \(most recent call last\)|File \"[^\"]+\", line \d+|"
    r"at [\w.$<>]+\([\w.]+:\d+)"
    r"|^\s*(?:npm (?:ERR!|WARN|notice)|\+{3} |-{3} a/|@@ -\d+|\$ \w+|>>> )"
    r"|^\S+ - - \[\d\d/\w{3}/\d{4}|^\w{3} +\d{1,2} \d\d:\d\d:\d\d \S+ \S+(?:\[\d+\])?:",
)
_BOILERPLATE: Final = re.compile(
    r"\blorem ipsum\b|\bas an ai (?:language )?model\b|\ball rights reserved\b|"
    r"\b(?:click|tap) here to (?:unsubscribe|subscribe|continue|learn|view|confirm)|"
    r"\bunsubscribe\b|"
    r"\bterms of (?:service|use) and privacy policy\b|\b(?:we|this (?:site|website|"
    r"page)) uses? cookies\b|"
    r"\baccept (?:all )?cookies\b|\bsubscribe to our newsletter\b|\bskip to (?:main )?content\b|"
    r"\bthis (?:email|message)[^.]{0,80}\b(?:confidential|intended (?:only|solely))\b|"
    r"\benable javascript\b|\bplease do not reply to this (?:e-?mail|message)\b|"
    r"\bthis is an automat(?:ed|ic) (?:message|reply|response|e-?mail)\b|"
    r"\byou are receiving this (?:e-?mail|message)\b|\bcopyright (?:\(c\)|\u00a9)|\u00a9 ?\d{4}|"
    r"\bi hope this (?:helps|email finds you well)\b|\bis there anything else i can help\b|"
    r"\blet me know if you (?:have any (?:other |further )?questions|need anything else)\b|"
    r"\bsent from my (?:iphone|android|ipad|mobile)\b|"
    r"\bview (?:this email )?in (?:your )?browser\b|"
    r"\bhow can i (?:help|assist) you today\b|\bpage \d+ of \d+\b|\bread more\b.{0,20}\bshare\b|"
    r"\bi'?m sorry,? but i (?:can(?:no|')t|am unable)\b|\btable of contents\b|\b404 not found\b",
    re.IGNORECASE,
)
_NOTHING: Final = frozenset(
    re.findall(
        r"\S+",
        """
        ok okay yes no yeah yep nope sure thanks thx thank you lol haha hmm hm hi hello hey bye cool
        nice great good fine done test testing tests asdf qwerty foo bar baz foobar todo tbd tba wip
        n/a na none null nil undefined nan placeholder example sample untitled blah xxx abc temp tmp
        dummy stuff things something whatever etc please it this that the and or so well right got
        sounds perfect awesome wow oh ah um uh np ty k kk idk omg brb true false hello123 aaa zzz
        """,
    )
)
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_BLOB: Final = re.compile(r"[A-Za-z0-9+/=_-]{80,}|(?:[0-9a-fA-F]{2}[ :]){16,}|(.)\1{15,}")
_MARKUP: Final = re.compile(r"</?\w+[^>]{0,200}>|[{}\[\]\"\\|=<>;]")
_BREAKS_OFF: Final = re.compile(
    r"(?:\b(?:and|or|but|the|a|an|of|to|for|with|because|that|which|from|in|on|at|is|was|by|as|if|"
    r"when|into|our|their|its|than|we|i|then|so)|[,(\u2026-]|\.\.\.)$",
    re.IGNORECASE,
)
_BEGINS_WITHIN: Final = re.compile(r"(?:and|or|but|of|to|which|because|so|that)\b")
_UNTIL: Final = re.compile(
    r"\b(?:until|till|through|expire[sd]?(?: on| at)?|valid (?:until|through|till)|ends?(?: on)?|"
    r"due(?: on| by)?|closes(?: on)?|by|before|no later than|deadline(?: is| of|:)?|scheduled for|"
    r"happening on|takes place on|on)\b[ :]*(?P<day>\d{4}-\d\d-\d\d|"
    r"(?:\d{1,2} )?(?:jan|feb|mar|apr|may|"
    r"jun|jul|aug|sep|oct|nov|dec)\w*\.? (?:\d{1,2},? )?\d{4})",
    re.IGNORECASE,
)
_FUTURE: Final = re.compile(
    r"\b(?:until|till|through|expires?|valid|ends?|due|closes|deadline|scheduled|upcoming|will|"
    r"no later than|happening|going to|takes place|remember to|must|need to|needs to|temporar\w+|"
    r"for now|offer|open)\b",
    re.IGNORECASE,
)
_RELATIVE: Final = re.compile(
    r"\b(?:today|tonight|tomorrow)(?!['\u2019]s)|"
    r"\b(?:this (?:morning|afternoon|evening|week|weekend|month|quarter|"
    r"sprint)|next (?:week|month|weekend|sprint|quarter|(?:mon|tues|wednes|thurs|fri|"
    r"satur|sun)day)|"
    r"right now|at the moment|as we speak|for the time being|for now|temporarily|in (?:an|\d+) "
    r"(?:hours?|minutes?|days?)|later today|by (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"the end of (?:the )?(?:day|week|month)|eod|eow))\b",
    re.IGNORECASE,
)
_FORMATS: Final = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%B %Y", "%b %Y")


def faults(
    content: str, *, find_personal: FindPersonal, is_part: bool, is_document: bool
) -> Iterator[NoteFault]:
    """Yield what is wrong with the text of a note, whenever it was written.

    `is_part` says that it stands in a conversation or document: short or broken parts are no junk
    there.
    """
    text = content[:_MAX_CHARS]
    if personal := _personal(text, find_personal):
        yield personal
    if injected := _injection(text):
        yield NoteFault(
            "injection", f"gives instructions to the reader: {_quoted(text, *injected)}"
        )
    if why := _junk(text, is_part=is_part, is_document=is_document):
        yield NoteFault("junk", f"{why}: {_cut(preview(text))}")


def is_stale(content: str, *, written: float, now: float) -> str:
    """Return why a note is past its time, by a day that it names or tells from; else nothing."""
    text = content[:_MAX_CHARS]
    if _FUTURE.search(text):
        days = [day for each in _UNTIL.finditer(text) if (day := _day(each["day"])) is not None]
        if days and written - _DAY_S <= max(days) < now - _DAY_S:
            return f"names a day that has passed: {datetime.fromtimestamp(max(days), UTC).date()}"
    found = _RELATIVE.search(text)
    if found and now - written > _PAST_DAYS * _DAY_S and len(text) < 400:
        age = int((now - written) / _DAY_S)
        return f"says {found.group()!r}, and was written {count(age, 'day')} ago"
    return ""


def _personal(text: str, find_personal: FindPersonal) -> NoteFault | None:
    found = list(find_personal(text))
    if not found:
        return None
    kinds = ", ".join(dict.fromkeys(kind for kind, _, _ in found))
    _, begin, end = found[0]
    # Never the value itself: the report is shown to models.
    return NoteFault(
        "secret", f"{kinds}: {text[begin : begin + 2]}… of {count(end - begin, 'character')}"
    )


def _injection(text: str) -> tuple[int, int] | None:
    if hidden := _HIDDEN.search(text):
        return hidden.span()
    for pattern in _INJECTION:
        if found := pattern.search(text):
            return found.span()
    return None


def _junk(text: str, *, is_part: bool, is_document: bool) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    logs = sum(_LOG_LINE.search(line) is not None for line in lines[:200])
    if logs and logs * 3 >= len(lines[:200]):
        return "lines of a log"
    if _BLOB.search(text) and len(_WORD.findall(_BLOB.sub("", text))) < 12:
        return "data, not words"
    if is_document:
        return ""
    if (found := _BOILERPLATE.search(text)) and len(text) < 1_500:
        return f"boilerplate ({found.group()[:30]!r})"
    if len(_MARKUP.findall(text)) * 4 > max(len(text) // 4, 10):
        return "markup or data, not words"
    return "" if is_part else _fragment(text)


def _fragment(text: str) -> str:
    words = [word.lower() for word in _WORD.findall(text)]
    if not words:
        return "no words"
    if len(words) <= 6 and _NOTHING.issuperset(words):
        return "says nothing"
    if len(words) == 1 and not any(char.isdigit() for char in text) and len(text.strip()) < 20:
        return "a single word"
    if len(words) > 3 and len(set(words)) * 4 <= len(words):
        return "the same words again and again"
    if len(words) < 12 and _BREAKS_OFF.search(text.strip()):
        return "breaks off"
    if len(words) <= 4 and _BEGINS_WITHIN.match(text.strip()):
        return "a fragment"
    vowels = sum(char in "aeiouy" for char in "".join(words) if char.isascii())
    letters = sum(char.isascii() and char.isalpha() for char in "".join(words))
    if letters > 8 and len(words) <= 4 and vowels * 6 < letters:
        return "no words of any language"
    return ""


def _day(written: str) -> float | None:
    plain = " ".join(written.replace(",", " ").replace(".", " ").split())
    for form in _FORMATS:
        try:
            return datetime.strptime(plain, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


def _quoted(text: str, begin: int, end: int) -> str:
    found = " ".join(text[begin:end].split())
    return repr(_cut(found)) if found else "invisible characters"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
