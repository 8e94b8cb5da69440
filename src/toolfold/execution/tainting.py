"""Where the words of untrusted upstreams turn up again.

What such an upstream answered is remembered by its words: each that is telling by itself (an
address, a number, a name with signs in it), every four that stand in a row, and short texts as a
whole. An argument that has one of these in it is tainted, wherever in a longer text that is. Code
that takes texts apart, spells them otherwise or encodes them is not seen through.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import anyio.to_thread

from toolfold.catalog.catalog import Cover, Keep
from toolfold.catalog.results import Blob, LargeAnswer
from toolfold.catalog.tool import Tool
from toolfold.execution.keeping import text_of
from toolfold.jsontypes import Json, JsonObject, plain

_WORD: Final = re.compile(r"[^\W_]+(?:[@.:/_+\-=?&%]+[^\W_]+)*")
_PLAIN: Final = re.compile(r"[^\W\d_]+")
_IN_A_ROW: Final = 4
_FEWEST_CHARS: Final = 4
_FEWEST_TELLING: Final = 5
_MOST_WORDS: Final = 400_000
_SHORT_CHARS: Final = 16_384
_MOST_SESSIONS: Final = 500
_DEEPEST: Final = 200


class Taint:
    """What untrusted upstreams have answered in a session, or in a run that has none."""

    def __init__(self, lost: str = "") -> None:
        self._lost = lost
        """Why not all of it is known; every argument counts as tainted then."""
        self._seen: dict[int, int] = {}
        self._origins: list[str] = []

    def learn(self, value: Json, origin: str) -> None:
        """Remember what came from somewhere."""
        self._origins.append(origin)
        number = len(self._origins) - 1
        for _, text in _leaves(value, "", 0):
            for mark in _marks(text):
                self._seen.setdefault(mark, number)
            if len(self._seen) > _MOST_WORDS:
                self.lose(f"{origin} answered with more than can be followed")
                return

    def lose(self, why: str) -> None:
        """Take note that not all is known any more."""
        self._lost = self._lost or why
        self._seen.clear()

    def find(self, arguments: JsonObject) -> str:
        """Say which argument holds what came from where; an empty text if none does."""
        if self._lost:
            return self._lost
        if not self._seen:
            return ""
        for path, text in _leaves(arguments, "", 0):
            for mark in _marks(text):
                if mark in self._seen:
                    return f"`{path}` holds what {self._origins[self._seen[mark]]} answered"
        return ""


class Taints:
    """What is known of the sessions of an app."""

    def __init__(self, untrusted: frozenset[str]) -> None:
        self.untrusted = untrusted
        self._sessions: OrderedDict[str, Taint] = OrderedDict()

    def of(self, session: str, *, has_state: bool) -> Taint:
        """Return what a run has to reckon with; a session without a name begins with nothing."""
        if not session or not self.untrusted:
            return Taint()
        known = self._sessions.get(session)
        if known is None:
            lost = "where the variables of this session came from is not known any more (a restart)"
            known = self._sessions[session] = Taint(lost if has_state else "")
        self._sessions.move_to_end(session)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return known


class Following:
    """Follows what untrusted upstreams answer to one run."""

    def __init__(self, taint: Taint, untrusted: frozenset[str]) -> None:
        self._taint = taint
        self._untrusted = untrusted

    def find(self, arguments: JsonObject) -> str:
        """Say which argument holds what came from where; an empty text if none does."""
        return self._taint.find(arguments) if self._untrusted else ""

    async def learn(self, server: str, origin: str, value: Json, size: int) -> None:
        """Remember what a server answered, if it is untrusted; about `size` characters."""
        if server not in self._untrusted:
            return
        if size <= _SHORT_CHARS:
            self._taint.learn(plain(value), origin)
        else:
            await anyio.to_thread.run_sync(self._taint.learn, value, origin)

    def keep(self, server: str, origin: str, keep: Keep) -> Keep:
        """Return who takes what is no value; of files that are text, their words are learned."""
        return _Learning(keep, self._taint, origin) if server in self._untrusted else keep


class _Learning:
    def __init__(self, keep: Keep, taint: Taint, origin: str) -> None:
        self._keep = keep
        self._taint = taint
        self._origin = origin

    def blob(self, blob: Blob, cover: Cover | None = None) -> Json:
        """Take an image or a binary."""
        if (text := text_of(blob)) is not None:
            self._taint.learn(text, self._origin)
        return self._keep.blob(blob, cover)

    async def large(self, tool: Tool, answer: LargeAnswer) -> Json:
        """Take what is too large, and too large to be followed."""
        self._taint.lose(f"{self._origin} answered with a file that is too large to be followed")
        return await self._keep.large(tool, answer)


def _leaves(value: Json, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield every text and every long number, with where it stands."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            inner = f"{path}.{key}" if path else key
            if not key.isidentifier():  # most are names of fields, and nobody's words
                yield inner, key
            yield from _leaves(each, inner, depth + 1)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]", depth + 1)
    elif isinstance(value, str) or _is_long(value):
        yield path, str(value)


def _is_long(value: Json) -> bool:
    """Whether a number is told apart from others."""
    return isinstance(value, int) and not isinstance(value, bool) and 10**4 < abs(value) < 10**60


def _marks(text: str) -> Iterator[int]:
    words = _WORD.findall(text.casefold())
    if len(words) < _IN_A_ROW:
        whole = " ".join(words)
        if len(whole) >= _FEWEST_CHARS:
            yield hash(("whole", whole))
    for word in words:
        if len(word) >= _FEWEST_TELLING and not _PLAIN.fullmatch(word):
            yield hash(word)
    for place in range(len(words) - _IN_A_ROW + 1):
        yield hash(tuple(words[place : place + _IN_A_ROW]))
