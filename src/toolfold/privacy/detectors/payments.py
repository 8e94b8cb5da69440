"""Find payment cards and IBANs, by their check digits. Pure."""

import re
from typing import Final

from toolfold.privacy.checks import luhn, mod_97
from toolfold.privacy.spans import AFTER, BEFORE, Span, candidates

# At once, or in the groups that are printed on cards; one kind of separator throughout.
_CARD: Final = re.compile(
    rf"[0-689]{BEFORE}"
    r"(?!(?<=0)(?!604)|(?<=1)[0-79]|(?<=8)[02-9]|(?<=9)[0-68])"  # no issuer has these prefixes
    r"(?:[0-9]{11,18}"
    r"|[0-9]{3}(?P<sign>[ -])"
    r"(?:[0-9]{4}(?P=sign)[0-9]{4}(?P=sign)[0-9]{1,4}(?:(?P=sign)[0-9]{1,3})?"
    r"|[0-9]{6}(?P=sign)[0-9]{4,5}))"
    rf"{AFTER}"
)
# Prefixes of the issuers, with the lengths they give out.
_ISSUED: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"
    r"|(?:5[1-5]|2[2-7]|35|6[0-9]|3[689]|81|97)[0-9]{14}"
    r"|3[47][0-9]{13}|(?:2131|1800)[0-9]{11}"
    r"|3(?:0[0-59]|[689][0-9])[0-9]{11}"
    r"|(?:220|3[05689][0-9]|6[0-9]{2})[0-9]{14,16}"
)
# Maestro has short numbers that chance makes too often, so these need a word nearby.
_SHORT: Final = re.compile(r"(?:5[0678]|6[0-9]|06)[0-9]{10,17}")
# A list of numbers with four digits each; beside one of them may stand a year, or a date.
_ROW_BEFORE: Final = re.compile(r"[0-9]{4} [0-9]{4} $")
_ROW_AFTER: Final = re.compile(r" [0-9]{4} [0-9]{4}(?![0-9])")
_CARD_WORDS: Final = re.compile(
    r"card|\bcc\b|credit|debit|maestro|visa|amex|carte|karte|tarjeta|carta|cart[ãa]o", re.IGNORECASE
)
# Written at once and of a wrong length, as test data has it; by its check digits and a word nearby.
_ODD_IBAN: Final = re.compile(r"[A-Za-z0-9]{11,30}(?!\w)")
_ACCOUNT_WORDS: Final = re.compile(r"\biban\b|account|transfer|bank|konto|compte", re.IGNORECASE)
_BEFORE_CHARS: Final = 80
_AFTER_CHARS: Final = 30

_IBAN: Final = re.compile(r"[A-Za-z](?<!\w.)[A-Za-z][0-9]{2}(?=[ -]?[A-Za-z0-9])")
_IBAN_MARK: Final = r"(?:[ -]?[A-Za-z0-9])"
_LENGTHS: Final = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FO", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "XK", "MN"), 20),
    **dict.fromkeys(("CH", "CR", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}
_IBAN_RESTS: Final = {
    length: re.compile(_IBAN_MARK + f"{{{length - 4}}}(?![A-Za-z0-9])")
    for length in set(_LENGTHS.values())
}
_NO_SIGNS: Final = str.maketrans("", "", " -")


class PaymentDetector:
    """Payment cards and IBANs."""

    kinds = ("CARD", "IBAN")

    def find(self, text: str) -> list[Span]:
        """Return the cards and IBANs whose check digits are right."""
        return [*candidates(_CARD, text, _card), *candidates(_IBAN, text, _iban)]


def _card(match: re.Match[str]) -> Span | None:
    number = match[0].translate(_NO_SIGNS)
    is_issued = _ISSUED.fullmatch(number)
    if not luhn(number) or not (is_issued or _SHORT.fullmatch(number)):
        return None
    is_sure = is_issued and not _is_in_row(match)
    is_card = is_sure or _is_near(_CARD_WORDS, match.string, *match.span())
    return Span("CARD", *match.span()) if is_card else None


def _is_in_row(match: re.Match[str]) -> bool:
    """Whether groups of digits go on before or behind, as in a list of numbers."""
    start, end = match.span()
    before = _ROW_BEFORE.search(match.string, max(0, start - 10), start)
    return bool(match["sign"] and (before or _ROW_AFTER.match(match.string, end)))


def _iban(match: re.Match[str]) -> Span | None:
    length = _LENGTHS.get(match[0][:2].upper())
    if length is None:
        return None
    rest = _IBAN_RESTS[length].match(match.string, match.end())
    odd = None if rest else _ODD_IBAN.match(match.string, match.end())
    found = rest or odd
    if found is None or not mod_97((match[0] + found[0]).upper().translate(_NO_SIGNS)):
        return None
    span = Span("IBAN", match.start(), found.end())
    is_meant = rest or _is_near(_ACCOUNT_WORDS, match.string, span.start, span.end)
    return span if is_meant else None


def _is_near(words: re.Pattern[str], text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _BEFORE_CHARS) : start]
    return bool(words.search(before) or words.search(text[end : end + _AFTER_CHARS]))
