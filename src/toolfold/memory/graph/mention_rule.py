"""When a text mentions an entity: where the words of its name stand one after the other. Pure."""

import re
from typing import Final

from toolfold.memory.graph.text_match import writable

MAX_NAME_WORDS: Final = 8
MAX_TEXT_WORDS: Final = 10_000

# `Ada_Lovelace` is how many name their entities, and `Ada Lovelace` how notes write it.
_WORD: Final = re.compile(r"[^\W_]+")


def spoken(name: str) -> str | None:
    """Return how a name stands in a text: its words in lower case, with one space between.

    None if it has no words, or so many that nobody would repeat it.
    """
    words = words_of(name)
    return " ".join(words) if 0 < len(words) <= MAX_NAME_WORDS else None


def phrases(text: str) -> list[str]:
    """Return all that a name that is mentioned in a text may be spoken like, in order, each once.

    Of a long text only the beginning counts.
    """
    words = words_of(text)[:MAX_TEXT_WORDS]
    found = {
        " ".join(words[start : start + length]): None
        for start in range(len(words))
        for length in range(1, min(MAX_NAME_WORDS, len(words) - start) + 1)
    }
    return list(found)


def is_mentioned(phrase: str, text: str) -> bool:
    """Tell whether a text mentions what is spoken so."""
    return f" {phrase} " in f" {' '.join(words_of(text))} "


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(writable(text).lower())
