"""Find phone numbers: by how they are written, and by the words around them. Pure.

Some ways of writing leave no doubt: a country code after `+`, an area code in brackets, an
extension. Others are shared with numbers of every sort and count only where words near them speak
of phones or of calling.
"""

import re
from functools import cached_property, lru_cache
from typing import Final

from toolfold.privacy.spans import Span

_MAX_CHARS: Final = 40
# Everything that may belong to one number. Its whole length is taken once, however long it is.
_PHRASE: Final = re.compile(
    r"[+(0-9](?<![\w+].)(?<!\w[-/][(0-9])(?<![0-9][.:][0-9])(?<![$€£].)(?<!#[0-9])"
    r"(?:(?<=\+)\(?[0-9]|(?<=\()(?=\+?[0-9]{1,5}\))\+?[0-9]|(?<=[0-9]))"
    r"(?:(?:[ \u00a0\u2009-]|[.\u2010-\u2013]|[ .-]?\(|\)[ ./-]?| ?/ ?)?[0-9])*+"
    r"(?P<extension>(?: ?(?:x|ext\.?|#) ?)[0-9]{1,6}(?![0-9]))?"
    r"(?!\w|[.:/][0-9]|[%€$£°])",
    re.DOTALL,
)
_FEWEST, _USUAL, _MAX_AT_ONCE, _MAX = 7, 9, 12, 15

_DATE: Final = re.compile(
    r"(?:[0-3]?[0-9][-./ ][01]?[0-9][-./ ](?:19|20)[0-9]{2}"
    r"|(?:19|20)[0-9]{2}[-./ ]?[01][0-9][-./ ]?[0-3][0-9])"
    r"(?:[ T].*)?"
)
_NANP: Final = (
    r"(?:1[ .-])?(?:[2-9][0-9]{2}(?P<sign>[.-])[0-9]{3}(?P=sign)[0-9]{4}"
    r"|(?:\([2-9][0-9]{2}\)[ .-]?|[2-9][0-9]{2}[ .-])[0-9]{3}[.-][0-9]{4})"
)
_SURE: Final = re.compile(
    r"\+(?![0-9]{0,8}$|[0-9]{1,3}\.[0-9]{1,7}$)\(?[0-9].*"  # a country code; no sum, no latitude
    r"|00[1-9][0-9]?[0-9]?[ .-].*"
    r"|(?:[0-9]{1,3} )?\((?!(?:19|20)[0-9]{2}\))\+?[0-9]{1,5}\)[ ./-]?[0-9].*"  # an area code
    rf"|{_NANP}"
    r"|0[1-9](?P<pairs>[ .-])[0-9]{2}(?:(?P=pairs)[0-9]{2}){3}"  # in pairs, as in France
)
# What is looked for inside a longer phrase: a list of numbers, or a year before one.
_WITHIN: Final = re.compile(
    r"(?<![0-9+(])(?<![0-9][-.])"
    r"(?:\+[1-9][0-9]{0,2}(?:[ .-]?\(?[0-9]{1,4}\)?){2,5}"
    r"|[2-9][0-9]{2}(?P<sign>[.-])[0-9]{3}(?P=sign)[0-9]{4}"
    r"|\([2-9][0-9]{2}\) ?[0-9]{3}[.-][0-9]{4})"
    r"(?![0-9]|[.-][0-9])"
)
# A trunk prefix and two or more groups: usual for phones, and rare for anything else.
_TRUNK: Final = re.compile(
    r"(?!0[0-9]{4}-[0-9]{4}$)"  # a postal code of the United States
    r"0[0-9]{1,4}(?:[ /-]| / )[0-9]{1,8}(?:[ /-][0-9]{2,4}){0,3}"
)
_GROUPED: Final = re.compile(r"[0-9]{1,5}(?:[ ./-][0-9]{1,8}){1,4}")

_SPEAKING_OF_PHONES: Final = (
    "phone tel tél tlf tfn fone mobile mobil mobiel móvil movil mob cell cellular cellulare "
    "celular komórka cep handy natel landline fax gsm whatsapp signal sms voicemail hotline "
    "helpline call calls called calling caller dial dialed dialled ring rang reach reached "
    "reachable contact answer answers answered answering text texted texting message "
    "messages registered rufnummer anrufen anruf ruf rückruf appeler appelez appel llamar "
    "llame llama chiamare chiama ligar numéro bellen тел моб мобильный"
)
# `Telefonnummer`, `phoneNumber`, `workPhone`
_PHONE_BEGINNINGS: Final = (
    *("phone", "telefo", "teléfo", "téléph", "teleph", "telefax", "telemóv", "puhelin"),
    *("mobilnum", "mobiltel", "handynum", "rufnum", "rückruf", "телефон", "τηλέφων"),
)
_CALLED: Final = re.compile(r"电话|電話|手机|携帯|전화")
# The letters before the numbers of a signature: `T: …`, `m. …`.
_LABELS: Final = tuple(f"{letter}{sign}" for letter in "tmpf" for sign in ":.")
_FOLLOWING: Final = "office fax mobile cell home work desk direct main tel phone voice"
_AFTER: Final = re.compile(
    rf"[\W_]{{0,3}}(?:{_FOLLOWING.replace(' ', '|')})\b",
    re.IGNORECASE,
)
# `called 4801227 times`
_COUNTED: Final = re.compile(r" (?:times|bytes|[km]b|ms|seconds|users|rows|items|tokens|char)")
# What the number is instead, said directly before it.
_SOMETHING_ELSE: Final = (
    "order orders invoice ticket case ref reference id ids isbn issn zip zipcode postcode "
    "code version port account acct serial sku part policy claim license licence passport "
    "amount total sum page room suite box apt card iban ssn pin timestamp build commit "
    "hash row"
)
_PHONE_WORDS: Final = frozenset(_SPEAKING_OF_PHONES.split())
_TELLING_WORDS: Final = _PHONE_WORDS | {*_FOLLOWING.split(), "number", *"tmpf"}
_OTHER_WORDS: Final = frozenset(_SOMETHING_ELSE.split())
_NO_SIGNS: Final = str.maketrans("", "", "+() \u00a0\u2009.-/\u2010\u2011\u2012\u2013")
_JOINING: Final = frozenset(("no", "num", "number", "nr", "is", "was", "my", "the"))
_WORD: Final = re.compile(r"[^\W\d_]+")
_BEFORE_CHARS: Final = 40
_AFTER_CHARS: Final = 12


class PhoneDetector:
    """Phone numbers of any country."""

    kinds = ("PHONE",)

    def find(self, text: str) -> list[Span]:
        """Return numbers that are written like phones, or stand where phones stand."""
        found: list[Span] = []
        page = _Page(text)
        for phrase in _PHRASE.finditer(text):
            if _is_whole(phrase, page):
                found.append(Span("PHONE", *phrase.span()))
            elif len(phrase[0]) > _FEWEST:
                found += [
                    Span("PHONE", *one.span())
                    for one in _WITHIN.finditer(text, *phrase.span())
                    if one[0] != phrase[0]
                ]
        return found


class _Page:
    """A text, and whether it speaks of phones at all: quicker than looking around each number."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def speaks_of_phones(self) -> bool:
        words = set(_WORD.findall(self._text.lower()))
        return not self._text.isascii() or any(
            word in _TELLING_WORDS or _is_phone_word(word) for word in words
        )


def _is_whole(phrase: re.Match[str], page: _Page) -> bool:
    """Whether all of a phrase is one phone number."""
    written = phrase[0]
    if not _FEWEST <= len(written) <= _MAX_CHARS:
        return False
    if written.isdigit():
        return len(written) <= _MAX_AT_ONCE and _is_meant(phrase, page, is_sure=False)
    number = written.removesuffix(phrase["extension"] or "")
    digits = len(number.translate(_NO_SIGNS))
    if not _FEWEST <= digits <= _MAX or _DATE.fullmatch(number):
        return False
    is_usual = digits >= _USUAL and _TRUNK.fullmatch(number)
    is_sure = bool(phrase["extension"] or is_usual or _SURE.fullmatch(number))
    return (is_sure or bool(_GROUPED.fullmatch(number))) and _is_meant(
        phrase, page, is_sure=is_sure
    )


def _is_meant(phrase: re.Match[str], page: _Page, *, is_sure: bool) -> bool:
    """Whether words say that it is a phone; a sure one needs only that none says otherwise."""
    if not is_sure and not page.speaks_of_phones:
        return False
    before = phrase.string[max(0, phrase.start() - _BEFORE_CHARS) : phrase.start()].lower()
    words = _WORD.findall(before)
    return not _is_something_else(words) and (is_sure or _is_spoken_of(phrase, words, before))


def _is_something_else(words: list[str]) -> bool:
    telling = next((word for word in reversed(words[-3:]) if word not in _JOINING), "")
    return telling in _OTHER_WORDS


def _is_spoken_of(phrase: re.Match[str], words: list[str], before: str) -> bool:
    after = phrase.string[phrase.end() : phrase.end() + _AFTER_CHARS]
    is_meant = (
        not _PHONE_WORDS.isdisjoint(words)
        or any(map(_is_phone_word, words))
        or _AFTER.match(after)
        or "my number" in before
        or _is_label(before.rstrip())
        or (not before.isascii() and _CALLED.search(before))
    )
    return bool(is_meant) and not (phrase[0].isdigit() and _COUNTED.match(after))


def _is_label(before: str) -> bool:
    return before.endswith(_LABELS) and not before[-3:-2].isalnum()


@lru_cache(maxsize=4096)
def _is_phone_word(word: str) -> bool:
    return word.startswith(_PHONE_BEGINNINGS) or word.endswith("phone")
