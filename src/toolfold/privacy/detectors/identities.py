"""Find national numbers of persons: by their shape, their check digits and the words around. Pure.

A shape that many other numbers have, and whose check passes by chance too often, counts only where
words near it say what it is.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from toolfold.privacy import checks
from toolfold.privacy.spans import AFTER, BEFORE, Span, candidates


class _Number(NamedTuple):
    """A kind of number: shapes that stand for themselves, and shapes that need a word nearby.

    In a shape `9` is a digit, `A` a letter, `#` either; anything else is itself. Words are in lower
    case; short ones count as whole words, and from five letters on as beginnings.
    """

    kind: str
    check: Callable[[str], bool]
    sure: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    keeps_signs: bool = False


_NUMBERS: Final = (
    _Number(
        "US_SSN", checks.us_ssn, ("999-99-9999",), ("999 99 9999", "999999999"), ("ssn", "social")
    ),
    _Number("US_ITIN", checks.us_itin, ("999-99-9999",), ("999999999",), ("itin", "tax")),
    _Number("UK_NINO", checks.uk_nino, ("AA999999A", "AA 99 99 99 A", "AA 999999 A")),
    _Number("UK_NHS", checks.uk_nhs, (), ("999 999 9999", "999-999-9999", "9999999999"), ("nhs",)),
    _Number(
        "DE_TAX_ID",
        checks.de_tax_id,
        (),
        ("99 999 999 999", "99999999999"),
        ("steuer", "idnr", "tax"),
    ),
    _Number(
        "FR_NIR",
        checks.fr_nir,
        ("9 99 99 99 999 999 99", "9 99 99 9A 999 999 99", "999999A99999999"),
        ("999999999999999", "9999999999999 99"),
        ("nir", "sécu", "secu", "insee", "social"),
    ),
    _Number(
        "ES_DNI",
        checks.es_dni,
        ("99999999A", "99999999-A", "A9999999A", "A-9999999-A", "99.999.999-A"),
    ),
    _Number("IT_FISCAL_CODE", checks.it_fiscal_code, ("AAAAAA##A##A###A", "AAA AAA ##A## A###A")),
    _Number(
        "NL_BSN",
        checks.nl_bsn,
        (),
        ("999999999", "9999.99.999", "9999 99 999", "999 999 999"),
        ("bsn", "burgerservice", "sofi"),
    ),
    _Number("BR_CPF", checks.br_cpf, ("999.999.999-99",), ("99999999999",), ("cpf",)),
    _Number(
        "IN_AADHAAR",
        checks.in_aadhaar,
        (),
        ("9999 9999 9999", "9999-9999-9999", "999999999999"),
        ("aadhaar", "aadhar", "uid", "आधार"),
    ),
    _Number("IN_PAN", checks.in_pan, (), ("AAAAA9999A",), ("pan", "income", "permanent")),
    _Number("PL_PESEL", checks.pl_pesel, (), ("99999999999",), ("pesel",)),
    _Number(
        "SE_PERSONAL_NUMBER",
        checks.se_personal_number,
        ("99999999-9999",),
        ("999999-9999", "999999999999", "9999999999"),
        ("person", "samordnings"),
    ),
    _Number(
        "FI_PERSONAL_CODE",
        checks.fi_personal_code,
        ("999999-999#", "999999A999#", "999999+999#"),
        keeps_signs=True,
    ),
    _Number(
        "BE_NATIONAL_NUMBER",
        checks.be_national_number,
        ("99.99.99-999.99",),
        ("99999999999",),
        ("rijksregister", "registre", "national", "insz", "niss"),
    ),
    _Number("CH_AHV", checks.ch_ahv, ("999.9999.9999.99",), ("9999999999999",), ("ahv", "avs")),
    _Number("CN_RESIDENT_ID", checks.cn_resident_id, ("99999999999999999#",)),
    _Number("SG_NRIC", checks.sg_nric, ("A9999999A",)),
    _Number(
        "TR_IDENTITY_NUMBER", checks.tr_identity_number, (), ("99999999999",), ("kimlik", "tc")
    ),
    _Number(
        "CA_SIN",
        checks.luhn,
        (),
        ("999 999 999", "999-999-999", "999999999"),
        ("sin", "insurance", "nas"),
    ),
    _Number("AU_TFN", checks.au_tfn, (), ("999 999 999", "999999999"), ("tfn", "tax")),
    _Number("ZA_ID", checks.za_id, (), ("9999999999999",), ("id", "identity")),
)

_BEFORE_CHARS: Final = 60
_AFTER_CHARS: Final = 20
_WHOLE_WORD_CHARS: Final = 4
_CLASSES: Final = {"9": "[0-9]", "A": "[A-Za-z]", "#": "[0-9A-Za-z]"}
_NO_SIGNS: Final = str.maketrans("", "", " .-")


class _Reading(NamedTuple):
    """One way to read a shape; without words it needs none."""

    number: _Number
    words: re.Pattern[str] | None


class IdentityDetector:
    """National numbers of persons in some twenty countries."""

    kinds = tuple(number.kind for number in _NUMBERS)

    def find(self, text: str) -> list[Span]:
        """Return the numbers that have a known shape and pass their check."""
        page = _Page(text)
        return [
            span
            for pattern, readings in _patterns()
            for span in candidates(pattern, text, _Reader(page, readings))
        ]


class _Page:
    """A text, and what was already looked for in all of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._known: dict[str, bool] = {}
        self._lowered: str | None = None

    def may_speak_of(self, number: _Number) -> bool:
        """Whether one of its words stands anywhere: quicker than looking around every number."""
        if number.kind not in self._known:
            self._lowered = self._lowered or self.text.lower()
            self._known[number.kind] = any(word in self._lowered for word in number.words)
        return self._known[number.kind]


class _Reader:
    """Decides what a match is."""

    def __init__(self, page: _Page, readings: dict[str, list[_Reading]]) -> None:
        self._page = page
        self._readings = readings

    def __call__(self, match: re.Match[str]) -> Span | None:
        for number, words in self._readings[match.lastgroup or ""]:
            if words is not None and not self._page.may_speak_of(number):
                continue
            written = match[0].upper()
            bare = written if number.keeps_signs else written.translate(_NO_SIGNS)
            if number.check(bare) and (words is None or _is_near(words, match)):
                return Span(number.kind, *match.span())
        return None


def _is_near(words: re.Pattern[str], match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _BEFORE_CHARS) : match.start()]
    after = match.string[match.end() : match.end() + _AFTER_CHARS]
    return bool(words.search(before) or words.search(after))


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], dict[str, list[_Reading]]], ...]:
    """Return a pattern for the shapes that begin with a digit, one for those with a letter."""
    shapes: dict[str, list[_Reading]] = {}
    for number in _NUMBERS:
        for shape in number.sure:
            shapes.setdefault(shape, []).append(_Reading(number, None))
        for shape in number.weak:
            shapes.setdefault(shape, []).append(_Reading(number, _any_word(number.words)))
    return tuple(_pattern(first, shapes) for first in "9A")


def _any_word(words: tuple[str, ...]) -> re.Pattern[str]:
    ends = "|".join(
        word if len(word) > _WHOLE_WORD_CHARS else rf"{word}(?![^\W_])" for word in words
    )
    return re.compile(rf"(?<![^\W_])(?:{ends})", re.IGNORECASE)


def _pattern(
    first: str, shapes: dict[str, list[_Reading]]
) -> tuple[re.Pattern[str], dict[str, list[_Reading]]]:
    chosen = sorted(shape for shape in shapes if shape[0] == first)
    names = {shape: f"s{place}" for place, shape in enumerate(chosen)}
    begin = _CLASSES[first]
    # The class comes first: that is what the engine can look for quickly.
    pattern = re.compile(rf"{begin}{BEFORE}{_branches(names, 1)}{AFTER}")
    return pattern, {name: _readings(shape, shapes) for shape, name in names.items()}


def _readings(shape: str, shapes: dict[str, list[_Reading]]) -> list[_Reading]:
    """Return every way to read a text of this shape: what has `9` here may have `#` elsewhere."""
    return [
        reading
        for other, readings in shapes.items()
        if len(other) == len(shape)
        and all(a == b or (a == "#" and b in "9A") for a, b in zip(other, shape, strict=True))
        for reading in readings
    ]


def _branches(names: dict[str, str], depth: int) -> str:
    """Return a pattern for what follows `depth` characters of shapes that begin alike.

    What several shapes have in common is written once, so that it is read once. The group that
    is named for a shape is empty and stands at its end.
    """
    ends = [f"(?P<{name}>)" for shape, name in names.items() if len(shape) == depth]
    marks = {shape[depth] for shape in names if len(shape) > depth}
    following = sorted(marks, key=lambda mark: (mark == "#", mark))
    branches = [
        _CLASSES.get(mark, re.escape(mark))
        + _branches({s: n for s, n in names.items() if s[depth : depth + 1] == mark}, depth + 1)
        for mark in following
    ]
    either = [*branches, *ends]
    return either[0] if len(either) == 1 else f"(?:{'|'.join(either)})"
