"""The words of a text that name what it is about. Pure."""

import re
from typing import Final

from toolfold.memory.ranking.words import telling_words

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
