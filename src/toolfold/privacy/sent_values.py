"""Find again, in one answer alone, what was sent for it. Pure.

A value that is short stands in too many texts to be looked for everywhere; where it was just sent,
it is likely to come back.
"""

import re
from collections.abc import Collection
from typing import Final

from toolfold.privacy.placeholder_table import HiddenValue
from toolfold.privacy.spans import Span, without_escapes

_SHORT: Final = 4


class SentValues:
    """The values that are looked for."""

    def __init__(self, values: Collection[HiddenValue]) -> None:
        self._texts = {str(value).casefold(): kind for kind, value in values if str(value)}
        self._numbers = {value: kind for kind, value in values if not isinstance(value, str)}
        # As they were written: `ß` is two letters in another case, which no pattern finds.
        longest = sorted({str(value) for _, value in values} - {""}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_written, longest)), re.IGNORECASE)

    def find(self, text: str) -> list[Span]:
        """Return where they stand in a text; short ones only as whole words."""
        if not self._texts:
            return []
        some = next(iter(self._texts.values()))
        return [
            Span(self._texts.get(match[0].casefold(), some), *match.span())
            for each in {text, without_escapes(text)}
            for match in self._pattern.finditer(each)
        ]

    def kind_of(self, number: float) -> str | None:
        """Return the kind of a number that is looked for; None if it is not."""
        return self._numbers.get(number)


def _written(text: str) -> str:
    pattern = re.escape(text)
    return rf"(?<![^\W_]){pattern}(?![^\W_])" if len(text) < _SHORT else pattern
