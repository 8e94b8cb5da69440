"""Find again, in one answer alone, what was sent for it. Pure.

A value that is short stands in too many texts to be looked for everywhere; where it was just sent,
it is likely to come back.
"""

import re
from collections.abc import Collection
from typing import Final

from toolfold.privacy.book import Hidden
from toolfold.privacy.spans import Span

_SHORT: Final = 4


class Sought:
    """The values that are looked for."""

    def __init__(self, values: Collection[Hidden]) -> None:
        self._texts = {str(value).casefold(): kind for kind, value in values}
        self._numbers = {value: kind for kind, value in values if not isinstance(value, str)}
        longest = sorted(filter(None, self._texts), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_written, longest)), re.IGNORECASE)

    def find(self, text: str) -> list[Span]:
        """Return where they stand in a text; short ones only as whole words."""
        if not self._texts:
            return []
        return [
            Span(kind, *match.span())
            for match in self._pattern.finditer(text)
            if (kind := self._texts.get(match[0].casefold()))
        ]

    def kind_of(self, number: float) -> str | None:
        """Return the kind of a number that is looked for; None if it is not."""
        return self._numbers.get(number)


def _written(text: str) -> str:
    pattern = re.escape(text)
    return rf"(?<!\w){pattern}(?!\w)" if len(text) < _SHORT else pattern
