"""Where personal data stands in a text, and what becomes of places that overlap. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
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
