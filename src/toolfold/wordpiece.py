"""Cut text into the word pieces that models of the BERT family know, by their vocabulary.

As such models were trained: no case, no accents, no control characters; every punctuation mark and
every Chinese character is a word by itself. A word is cut from its beginning into the longest
pieces that the vocabulary has, and is unknown as a whole if it cannot be.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

MAX_WORD_CHARS: Final = 100
"""A longer word is unknown."""

# The blocks that the published tokenizer takes for Chinese; it leaves out the same few characters.
_CHINESE: Final = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)
_SPACES: Final = frozenset({"Zs", "Zl", "Zp"})
_REMOVED: Final = frozenset({"Cc", "Cf", "Co"})
_SIGNS: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
# All that people write fits; all of Unicode would take 200 MB.
_MAX_KNOWN_CHARS: Final = 65_536


class WordPieces:
    """A vocabulary, and the numbers it has for a text. Any thread may call it."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._longest = max(map(len, vocabulary))
        self._start, self._end = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._unknown = [vocabulary["[UNK]"]]
        self._spelling = _Spelling()

    @classmethod
    def read(cls, path: Path) -> "WordPieces":
        """Return those of a `tokenizer.json`."""
        return cls(json.loads(path.read_bytes())["model"]["vocab"])

    def encode(self, text: str, most: int) -> list[int]:
        """Return what a model is given: at most so many numbers, the mark at either end included.

        No text can spell a mark: its brackets are words by themselves.
        """
        return [self._start, *islice(self._pieces(text), most - 2), self._end]

    def count(self, text: str) -> int:
        """Return how many pieces all of a text has, without marks."""
        return sum(1 for _ in self._pieces(text))

    def _pieces(self, text: str) -> Iterator[int]:
        # A pair of surrogates means one character; a lone one means none.
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for word in whole.translate(self._spelling).split():
            number = self._vocabulary.get(word)
            if number is None:
                yield from self._cut(word)
            else:
                yield number

    def _cut(self, word: str) -> list[int]:
        """Return the pieces of a word, each the longest there is from where the last one ends."""
        if len(word) > MAX_WORD_CHARS:
            return self._unknown
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._vocabulary.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            pieces.append(number)
            start = end
        return pieces


class _Spelling(dict[int, str]):
    """What each character becomes, for `str.translate`; worked out when it first comes."""

    def __missing__(self, code: int) -> str:
        spelled = _spell(chr(code))
        if len(self) < _MAX_KNOWN_CHARS:
            self[code] = spelled
        return spelled


def _spell(char: str) -> str:
    """Return the character as the vocabulary spells it, with spaces around a word by itself."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category in _SPACES:
        return " "
    if char == "\ufffd" or category in _REMOVED:
        return ""
    parts = unicodedata.normalize("NFD", char)
    spelled = "".join(part for part in parts if unicodedata.category(part) != "Mn").lower()
    if any(ord(char) in block for block in _CHINESE):
        return f" {spelled} "
    return "".join(f" {part} " if _is_punctuation(part) else part for part in spelled)


def _is_punctuation(char: str) -> bool:
    return char in _SIGNS or unicodedata.category(char).startswith("P")
