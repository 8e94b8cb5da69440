"""Where personal data stands in a text, and what becomes of places that overlap. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

# Borders of a number, behind its first digit and at its end. What stands in a list, a table or
# behind a label is a number by itself; a fraction, a part of a path or of an identifier is none.
BEFORE: Final = r"(?<!\w.)(?<!\w-.)(?<![0-9][./].)"
AFTER: Final = r"(?!\w|[-.][0-9])"

# The end of a line, a blank or a sign, as texts within JSON and within URLs have them.
_ESCAPED: Final = re.compile(r"\\[nrt]|%(?!40)[2-3][0-9A-Fa-f]|%0[9ADad]")


class Span(NamedTuple):
    """`text[start:end]` is personal data of this kind."""

    kind: str
    start: int
    end: int


class Detector(Protocol):
    """Finds personal data. Any thread may call it."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds it may find; of two that claim the same place, the earlier one gets it."""

    def find(self, text: str) -> list[Span]:
        """Return what it found, in any order; places may overlap."""


def merge(spans: Iterable[Span], rank: Callable[[str], int]) -> list[Span]:
    """Return spans that do not overlap, in the order of the text.

    Spans that overlap become one that covers all of them, so that no part of any is left over. It
    has the kind of the longest; of equally long ones, the kind of the lowest rank.
    """
    merged: list[Span] = []
    longest = Span("", 0, 0)
    for span in sorted(spans, key=lambda span: (span.start, -span.end, rank(span.kind))):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            longest = span
            continue
        longest = max(longest, span, key=lambda one: (one.end - one.start, -rank(one.kind)))
        last = merged[-1]
        merged[-1] = Span(longest.kind, last.start, max(last.end, span.end))
    return merged


def without_escapes(text: str) -> str:
    """Return a text with blanks for what is escaped, or `\\n` would be a letter before a word."""
    if "\\" not in text and "%" not in text:
        return text
    return _ESCAPED.sub(lambda match: " " * len(match[0]), text)


def candidates(
    pattern: re.Pattern[str], text: str, accept: Callable[[re.Match[str]], Span | None]
) -> Iterator[Span]:
    """Yield what `accept` makes of the matches of `pattern`.

    After a match that is refused the search goes on one character later: a number that fails its
    check must not hide another that begins within it. So patterns begin at the border of a word
    and are bounded; then the whole takes time in proportion to the text.
    """
    position = 0
    while match := pattern.search(text, position):
        span = accept(match)
        if span is None:
            position = match.start() + 1
        else:
            yield span
            position = max(span.end, match.start() + 1)


# Placeholders: how they are written, found again in texts, and which values share one. Pure.
#
# `[EMAIL_1]` is the first e-mail address of a vault, `[EMAIL_1.2]` the second way in which that
# same address was written. So what is equal looks equal, and still every spelling comes back
# exactly.

LITERAL: Final = "LITERAL"
"""The kind of text that only looks like a placeholder; it is nobody's, and revealed to all."""

KIND: Final = re.compile(r"[A-Z][A-Z0-9_]{0,39}")

# In any case, since programs lower the case of addresses before they compare them.
_PLACEHOLDER: Final = re.compile(
    r"\[([A-Za-z][A-Za-z0-9_]{0,39})_([1-9][0-9]{0,8})(?:\.([2-9]|[1-9][0-9]{1,5}))?\]"
)
_SIGNS: Final = str.maketrans("", "", " \u00a0\u2009.-()/\u2010\u2011\u2012\u2013")
# Kinds in which every sign counts; all others are compared as words or as numbers.
_EXACT: Final = {LITERAL, "SECRET", "API_KEY", "JWT", "PRIVATE_KEY", "LOGIN_URL"}
_AS_WORDS: Final = {"EMAIL", "NAME", "ADDRESS", "PERSON", "LOCATION", "ORGANIZATION", "IP"}


class Placeholder(NamedTuple):
    """What stands in for a value."""

    kind: str
    number: int
    variant: int = 1

    def __str__(self) -> str:
        variant = f".{self.variant}" if self.variant > 1 else ""
        return f"[{self.kind}_{self.number}{variant}]"


class FoundPlaceholder(NamedTuple):
    """`text[start:end]` is written like this placeholder."""

    placeholder: Placeholder
    start: int
    end: int


def find_placeholders(text: str, kinds: Collection[str]) -> Iterator[FoundPlaceholder]:
    """Yield what is written like a placeholder of one of these kinds, known or not."""
    if "[" not in text:
        return
    for match in _PLACEHOLDER.finditer(text):
        kind = match[1].upper()
        if kind in kinds:
            yield FoundPlaceholder(
                Placeholder(kind, int(match[2]), int(match[3] or 1)), match.start(), match.end()
            )


def normal_form(kind: str, written: str) -> str:
    """Return what is the same for all spellings of a value."""
    if kind in _EXACT:
        return written
    if kind in _AS_WORDS:
        return " ".join(written.casefold().replace("%40", "@").split())
    return written.translate(_SIGNS).upper()
