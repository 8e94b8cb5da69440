"""Read what a person asks: the telling words of any text, as an FTS5 query."""

import re
import unicodedata
from itertools import islice

# A question pasted with half a page around it: what is worth asking for stands at its beginning.
_MAX_CHARS = 10_000
_MAX_WORDS = 64

_WORD = re.compile(r"\w+")

# Words that say nothing of a subject. The list is short on purpose: longer ones, which hold words
# like `before`, `own` or `more`, found fewer of the notes that answer a question.
STOP_WORDS = frozenset(
    _WORD.findall("""
    a about an and any are as at be been by can could did do does for from had has have he her him
    his how i if in into is it its me my no not of on or our she should so some than that the their
    them then there these they this those to us was we were what when where which who whom why will
    with would you your
    """)
)

# `Ada's` and `we'll` leave an `s` and an `ll` behind, which would match every other one.
_SHORT_FORM = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_CLOSING = " \t\r\n\"'\u201d\u2019\u00bb)]*_"


def telling_words(text: str) -> list[str]:
    """Return the words of `text` that say what it is about, in lower case, each once, in order.

    Where all are stop words, all of them are returned. Of a long text only the beginning counts.
    """
    lowered = text[:_MAX_CHARS].lower()
    words = dict.fromkeys(_split(_SHORT_FORM.sub(" ", lowered)))
    telling = [word for word in words if word not in STOP_WORDS]
    return list(islice(telling or words, _MAX_WORDS))


def match_expression(text: str) -> str | None:
    """Return the FTS5 query for notes with any of the telling words of `text`.

    It is valid whatever `text` is: what FTS5 would take for syntax is quoted or left out. None
    means that `text` has no words at all.
    """
    return " OR ".join(f'"{word}"' for word in telling_words(text)) or None


def is_question(text: str) -> bool:
    """Tell whether `text` ends by asking something."""
    return text.rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def _split(text: str) -> list[str]:
    """Return the words of `text`; marks that belong to letters, as Hindi's vowels, stay in them."""
    if text.isascii():
        return _WORD.findall(text)
    joined = "".join(char if _belongs_to_word(char) else " " for char in text)
    return [word for word in joined.split() if _WORD.search(word)]


def _belongs_to_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"
