"""A text as words and numerals, each with what stands before it."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    [AaPp]\.[Mm]\b\.?                       # a.m.
    | [^\W\d_]\w*(?:['\u2019][^\W\d_]+)?    # a word, with its possessive
    | \d[\w.:/+\u2013-]*                    # a number, a date, a time, a range of them
    """,
    re.VERBOSE,
)
_MERIDIEM = re.compile(r"[ap]\.m\.?")
_MAX = 40
_GLUE_BEFORE = "/\\@#$€£._=&"
_GLUE_AFTER = "/\\@_="
_DASHES = {"-", "\u2013", "\u2014"}
_TRAILING = ".:/+\u2013-"

SPACE, COMMA, DASH, OTHER = " ", ",", "-", "?"


@dataclass(frozen=True, slots=True)
class Token:
    """A word in lower case without its possessive, or a numeral as it stands.

    What is part of a path, an address, an identifier or a price has no word.
    """

    word: str
    start: int
    end: int
    join: str
    """What stands before it: SPACE, COMMA, DASH or OTHER."""
    is_capital: bool = False
    is_possessive: bool = False


def tokenize(text: str) -> list[Token]:
    """Return the words and numerals of `text`, in order."""
    tokens: list[Token] = []
    last = 0
    for match in _TOKEN.finditer(text):
        token = _token(text, match, text[last : match.start()])
        tokens.append(token)
        last = token.end
    return tokens


def _token(text: str, match: re.Match[str], gap: str) -> Token:
    written, end = match.group(), match.end()
    if written[0].isdecimal():
        written = written.rstrip(_TRAILING)
        end = match.start() + len(written)
    if len(written) > _MAX or _is_glued(text, gap, end):
        return Token("", match.start(), end, OTHER)
    word = written.lower().replace("\u2019", "'")
    if _MERIDIEM.fullmatch(word):
        word = word.replace(".", "")
    return Token(
        word=word.removesuffix("'s"),
        start=match.start(),
        end=end,
        join=_join(gap),
        is_capital=written[0].isupper(),
        is_possessive=word.endswith("'s"),
    )


def _is_glued(text: str, gap: str, end: int) -> bool:
    after = text[end : end + 2]
    is_continued = after[:1] == "." and after[1:].isalnum()
    return gap[-1:] in tuple(_GLUE_BEFORE) or after[:1] in tuple(_GLUE_AFTER) or is_continued


def _join(gap: str) -> str:
    between = gap.strip()
    if between in _DASHES:
        return DASH
    return {"": SPACE, ",": COMMA}.get(between, OTHER)
