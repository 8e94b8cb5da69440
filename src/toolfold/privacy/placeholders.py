"""Placeholders: how they are written, found again in texts, and which values share one. Pure.

`[EMAIL_1]` is the first e-mail address of a vault, `[EMAIL_1.2]` the second way in which that same
address was written. So what is equal looks equal, and still every spelling comes back exactly.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

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
