"""Find again what is already concealed, wherever it stands. Pure.

A detector needs a form, and a field rule a key. A name that came by a field is found by its words
in every text after that; so is a phone number where nothing speaks of phones.
"""

import re
from typing import Final, NamedTuple

from toolfold.privacy.spans import Span, without_escapes

_WORD: Final = re.compile(r"[^\W_]+")  # `Ada_King.pdf` has three
_FEWEST_CHARS: Final = 4
_FEWEST_DIGITS: Final = 6  # or every year would be somebody's postal code
_MAX_CHARS: Final = 400
_MAX_WORDS: Final = 12
_WIDEST_GAP: Final = 3
_MAX_AT_A_LEAF: Final = 8


class _Value(NamedTuple):
    kind: str
    written: str
    lead: str
    tail: str


class _Node:
    """What may follow the words that lead here, and the values that end here."""

    __slots__ = ("following", "values")

    def __init__(self) -> None:
        self.following: dict[str, _Node] = {}
        self.values: list[_Value] = []


class KnownValues:
    """The values of a vault, by their words."""

    def __init__(self) -> None:
        self._root = _Node()
        self._added: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(self._added)

    def add(self, kind: str, written: str) -> None:
        """Find this value from now on, unless it is too short or too long to be told apart."""
        if (kind, written) in self._added or not can_be_known(written):
            return
        self._added.add((kind, written))
        words = list(_WORD.finditer(without_escapes(written)))
        node = self._root
        for word in words:
            node = node.following.setdefault(word[0].casefold(), _Node())
        value = _Value(kind, written, written[: words[0].start()], written[words[-1].end() :])
        if len(node.values) < _MAX_AT_A_LEAF:
            node.values.append(value)

    def find(self, text: str) -> list[Span]:
        """Return where known values stand as whole words: the longest that begins at each word.

        Of several words, neither case nor what is between them matters; one alone is found as it
        is written.
        """
        if not self._root.following:
            return []
        plain = without_escapes(text)
        return self._found(text) if plain == text else [*self._found(text), *self._found(plain)]

    def _found(self, text: str) -> list[Span]:
        found = []
        for word in _WORD.finditer(text):
            node = self._root.following.get(word[0].casefold())
            if node is not None and (span := _longest(node, text, word)):
                found.append(span)
        return found


def can_be_known(written: str) -> bool:
    """Whether a value is told apart from ordinary words and numbers."""
    if (
        len(written) > _MAX_CHARS
        or not 0 < len(_WORD.findall(without_escapes(written))) <= _MAX_WORDS
    ):
        return False
    count = sum(map(str.isalnum, written))
    return count >= (_FEWEST_DIGITS if written.strip().isdigit() else _FEWEST_CHARS)


def _longest(node: _Node, text: str, first: re.Match[str]) -> Span | None:
    best = None
    end = first.end()
    is_alone = True
    while True:
        best = _ending(node, text, first.start(), end, is_alone=is_alone) or best
        word = _WORD.search(text, end, end + _WIDEST_GAP + 1) if node.following else None
        # The search ends within the word, so that a long gap costs nothing.
        word = word and _WORD.match(text, word.start())
        following = node.following.get(word[0].casefold()) if word else None
        if word is None or following is None:
            return best
        node, end, is_alone = following, word.end(), False


def _ending(node: _Node, text: str, start: int, end: int, *, is_alone: bool) -> Span | None:
    for kind, written, lead, tail in node.values:
        begins = start - len(lead) if text.endswith(lead, 0, start) else start
        ends = end + len(tail) if text.startswith(tail, end) else end
        if not is_alone or text[begins:ends] == written:
            return Span(kind, begins, ends)
    return None
