"""What a consolidation holds of each note, and whether two say the same. Pure."""

import hashlib
import json
import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from toolfold.memory.consolidation.store import SeenNote, StoredNote
from toolfold.memory.ranking.rank import ESTIMATES, telling_words

# Whether two texts say the same in the same words. Pure.
#
# Two texts are the same if they differ in nothing but how they are written: upper and lower case,
# white space, quotes, marks between words, emphasis, articles, short forms such as `don't`, and
# words that add nothing. Any other word, number, name, unit or order of words makes them
# different, and so does a question mark. Nearness of vectors is no argument here: `port 8080` and
# `port 8081`, `do` and `do not` are as near as texts can be.

_ARTICLES: Final = frozenset({"a", "an", "the"})
_FILLERS: Final = frozenset({"please", "also", "actually", "basically", "fyi", "btw"})
_ANNOUNCING: Final = re.compile(r"^(?:note|remember|reminder|nb|n\.b\.|fyi)\s*:\s*", re.IGNORECASE)
# Where these follow, an `a` is a letter and not an article: `option a or b`.
_NOT_AFTER_ARTICLES: Final = frozenset({"and", "or", "is", "was", "to", "of", "in", "for", "with"})

_SHORT_FORMS: Final = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "shan't": "shall not",
    "let's": "let us",
    "&": "and",
}
_ENDINGS: Final = {"n't": " not", "'re": " are", "'ve": " have", "'ll": " will", "'m": " am"}
# Of other words, `'s` may be a possessive.
_IS_SHORTENED: Final = frozenset({"it's", "that's", "there's", "what's", "he's", "she's", "who's"})

_WRITTEN_ALIKE: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u00ab\u00bb\u201e", '"'),
        **dict.fromkeys("\u2010\u2011\u2013\u2014", "-"),
        "\u2026": "...",
    }
)
_EMPHASIS: Final = re.compile(r"(?<!\w)(\*{1,3}|`{1,3})(\S(?:[^*`]*?\S)?)\1(?!\w)")
# Before a number, a dash may be a minus.
_LINE_MARK: Final = re.compile(r"^[ \t]*(?:[-*\u2022]|#{1,6})\s+(?=[^\W\d])", re.MULTILINE)
_OPENING: Final = "\"'(["
_OPENED: Final = {")": "(", "]": "["}
_CLOSING: Final = "\"'.,;:!"
_MAX_CHARS: Final = 20_000
_MAX_WORD_CHARS: Final = 200
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_ENDS_SENTENCE: Final = (".", "!", "?", ":")

_RELATIVE_TIME: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|currently|recently|soon|later|ago|"
    r"(?:this|next|last|past|coming)\s+\w+|(?:on\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)


def sameness_key(text: str) -> bytes:
    """Return what is equal for two texts exactly if they say the same in the same words."""
    return hashlib.sha256(" ".join(canonical(text)).encode()).digest()[:16]


def canonical(text: str) -> list[str]:
    """Return the words of a text that make it what it is, written in one way.

    A long text is what it is to the letter.
    """
    if len(text) > _MAX_CHARS:
        return [text]
    text = _LINE_MARK.sub("", text.translate(_WRITTEN_ALIKE))
    text = _ANNOUNCING.sub("", _EMPHASIS.sub(r"\2", text).strip())
    written = text.split()
    words = [_bare(word) for word in written]
    starts = {0, *(at + 1 for at, word in enumerate(written) if word.endswith(_ENDS_SENTENCE))}
    if not _is_case_telling(words, starts):
        is_loud = text.isupper()
        words = [
            _folded(word, is_loud=is_loud, is_first=at in starts) for at, word in enumerate(words)
        ]
    return _essential([part for word in words for part in _long_form(word).split()])


def depends_on_its_day(text: str) -> bool:
    """Whether a text names a time as seen from when it was written: `tomorrow`, `next week`."""
    return _RELATIVE_TIME.search(text[:_MAX_CHARS]) is not None


def _bare(word: str) -> str:
    """Return a word without the marks around it that only part it from others.

    A mark that could belong to it stays: `.env`, `-v`, `foo()`, `C#`, `5%`, `?`.
    """
    if len(word) > _MAX_WORD_CHARS:
        return word
    word = word.lstrip(_OPENING) or word
    while _only_parts(word):
        word = word[:-1]
    if word.endswith("?") and word.strip("?"):
        return f"{_bare(word.rstrip('?'))} ?"
    return word


def _only_parts(word: str) -> bool:
    """Whether the last mark of a word only parts it from the next."""
    last = word[-1:]
    if last in ")]" and len(word) > 1:
        return word.count(last) > word.count(_OPENED[last])
    return last in _CLOSING and bool(word.strip(_CLOSING))


def _folded(word: str, *, is_loud: bool, is_first: bool) -> str:
    """Return a word in lower case, where case is but a way of writing it.

    It is more than that in what is no plain word (`-V`, `getUser`, `x2`), in single letters
    (`plan A`), and in capitals that could stand for something (`US`, `WHO`).
    """
    if word.islower() or not _PLAIN_WORD.fullmatch(word.removesuffix(" ?")):
        return word
    if is_first and word[1:] == word[1:].lower():
        return word.lower()
    is_name_like = word.isupper() and not is_loud
    is_mixed = word[1:] != word[1:].lower() and not word.isupper()
    return word if is_name_like or is_mixed else word.lower()


def _is_case_telling(words: list[str], starts: set[int]) -> bool:
    """Whether a text has one word in two cases, as in `rename foo to Foo`."""
    inside = {word for at, word in enumerate(words) if at not in starts}
    return len(inside) != len({word.lower() for word in inside})


def _long_form(word: str) -> str:
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    if "'" not in word:
        return word
    if word in _IS_SHORTENED:
        return f"{word[:-2]} is"
    for ending, long in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return word.removesuffix(ending) + long
    return word


def _essential(words: list[str]) -> list[str]:
    kept = [
        word
        for word, after in zip_longest(words, words[1:], fillvalue="")
        if not (word in _FILLERS or (word in _ARTICLES and _may_follow_article(after)))
    ]
    return kept or words


def _may_follow_article(word: str) -> bool:
    return word.isalpha() and word not in _NOT_AFTER_ARTICLES


# Words that stand in texts about anything: what two notes share of these says nothing of either.
_GENERIC: Final = frozenset(
    re.findall(
        r"\w+",
        """
        able actually after again against ago ain all almost already also always am amazing
        another anyone anything around ask asked away awesome awhile back bad because before began
        being best better between big bit both bring but came cannot come coming cool couldn day
        definitely didn different doesn doing don done down during each either else enough
        especially even ever every everyone everything exactly far feel feeling felt few find
        first found fun gave get getting give given giving glad going gone gonna good got great
        guess guy happened happy hard hasn haven having hear heard hello help helped here hey hi
        high him hope hour how huge idea into isn just keep kept kind knew know last late lately
        later least less let life like little ll lol long look looking lot love made make making
        many matter may maybe mean might minute month more morning most much must myself need
        needed never new next nice nor nothing now off oh ok okay old once one only other
        otherwise ourselves out over own part past people perhaps person place please point pretty
        probably put quite rather re really recently remember right said same saw say saying
        second see seem seemed seen set show since small something soon sort sound special still
        such super sure take taken taking talk talked tell than thank thanks then these thing
        think thinking though thought through time today together told tomorrow tonight too took
        totally toward tried true truly try trying two under understand until up upon us use used
        using usually ve very wait wanna want wanted wasn way week well went weren while whole
        without won wonderful word work worked working world worth wouldn wow yeah year yes
        yesterday yet yourself
        """,
    )
)
_FEWEST_CHARS: Final = 2


def subjects(text: str) -> tuple[str, ...]:
    """Return what a text is about, word by word, each once and in the order in which they come."""
    words = dict.fromkeys(map(folded, telling_words(text)))
    return tuple(word for word in words if word not in _GENERIC and len(word) >= _FEWEST_CHARS)


def folded(word: str) -> str:
    """Return a word without the ending of a plural: `deploys` and `deploy` are one."""
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


PINNED_TAGS: Final = frozenset({"important", "pinned"})

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiedNote:
    """One note, without its text: there may be a great many."""

    key: int
    seen: SeenNote
    tags: tuple[str, ...]
    thread: str | None
    created: float
    quality: float
    is_rated: bool
    """Whether its quality is what somebody said, and not what was estimated."""

    influence: float
    gets: int
    last_used: float
    """When somebody last used, changed or stored it. Not when it was created: what comes in from
    elsewhere with a date of long ago has not had a chance to be used."""

    links: frozenset[str]
    vector: bytes | None
    words: tuple[str, ...]
    """What it is about; see `subjects`."""

    sameness: bytes
    """Equal for two notes that say the same."""

    @property
    def is_pinned(self) -> bool:
        """Whether nothing may be done to it."""
        return any(tag.casefold() in PINNED_TAGS for tag in self.tags)

    @property
    def occasion(self) -> object:
        """What it was said in: parts of one conversation or document count as one."""
        return self.key if self.thread is None else self.thread


def study(note: StoredNote) -> StudiedNote:
    """Read a note."""
    return StudiedNote(
        key=note.key,
        seen=SeenNote(note.hash, note.version),
        tags=note.tags,
        thread=note.thread,
        created=note.created,
        quality=note.quality,
        influence=note.influence,
        gets=note.gets,
        is_rated=note.quality not in ESTIMATES,
        last_used=max(note.updated, note.last_used or note.updated),
        links=note.links,
        vector=note.vector,
        words=subjects(note.content),
        sameness=_sameness(note),
    )


def _sameness(note: StoredNote) -> bytes:
    """Return what equal notes share: their words, and all that gives words another meaning."""
    day = note.created // _DAY_S if depends_on_its_day(note.content) else None
    about = json.dumps([note.type, day, note.metadata], sort_keys=True)
    return sameness_key(note.content) + about.encode()
