"""Where the words of untrusted upstreams turn up again.

What such an upstream answered is remembered by its words: each that is telling by itself (an
address, a number, a name with signs in it), every four that stand in a row, and short texts as a
whole. An argument that has one of these in it is tainted, wherever in a longer text that is. Code
that takes texts apart, spells them otherwise or encodes them is not seen through.

By the preset `careful` nothing has to be seen through: from the first such answer on, an argument
of a call that may write is also tainted where it does not stand in the program as a whole.
"""

import ast
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final, TypeVar
from urllib.parse import unquote

import anyio.to_thread

from toolfold.catalog.tool import ArtifactSink, Blob, LargeAnswer, Redact, Tool
from toolfold.errors import shown
from toolfold.execution.artifacts import text_of
from toolfold.jsontypes import Json, JsonObject, plain

_WORD: Final = re.compile(r"[^\W_]+(?:[@.:/_+\-=?&%]+[^\W_]+)*")
_PLAIN: Final = re.compile(r"[^\W\d_]+")
_ADDRESS: Final = re.compile(r"\w+://[^\s/?#]+[/?#](\S+)")
_PARTS: Final = re.compile(r"[/?&=#:;,]+")
_IN_A_ROW: Final = 4
_FEWEST_CHARS: Final = 4
_FEWEST_TELLING: Final = 5
_MAX_WORDS: Final = 400_000
_SHORT_CHARS: Final = 16_384
_MAX_SESSIONS: Final = 500
_T = TypeVar("_T", JsonObject, list[Json])

_DEEPEST: Final = 200
_PATH_CHARS: Final = 40

LiteralKey = tuple[type, str | float | None]
"""A value that can stand in a program as it is; 1 is 1.0, and is not True."""

Literals = Callable[[], frozenset[LiteralKey]]
"""Returns what stands in a program."""


class Taint:
    """What untrusted upstreams have answered in a session, or in a run that has none."""

    def __init__(self, lost: str = "") -> None:
        self._lost = lost
        """Why not all of it is known; every argument counts as tainted then."""
        self._first = ""
        """Who was the first to answer anything, also if nothing in it is telling."""
        self._seen: dict[int, str] = {}
        """By what a text is known again, where it came from."""

    def learn(self, value: Json, origin: str) -> None:
        """Remember what came from somewhere."""
        self._first = self._first or origin
        for _, text in _leaves(value, "", 0):
            for mark in _marks(text):
                self._seen.setdefault(mark, origin)
            if len(self._seen) > _MAX_WORDS:
                self.lose(f"{origin} answered with more than can be followed")
                return

    def lose(self, why: str) -> None:
        """Take note that not all is known any more."""
        self._lost = self._lost or why
        self._seen.clear()

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to find."""
        return not self._lost and not self._first

    def find(self, arguments: JsonObject) -> str:
        """Say which argument holds what came from where; an empty text if none does."""
        path, origin = self._trace(arguments)
        return self._lost or (f"`{shown(path)}` contains an answer of {origin}" if origin else "")

    def find_computed(self, written: frozenset[LiteralKey], arguments: JsonObject) -> str:
        """Say which argument does not stand in the program; an empty text if all do."""
        path = _first_unwritten(arguments, written)
        place = f"`{shown(path)}` is" if path else ""
        return place and f"{place} not written in the program, and {self._first} has answered"

    def origin_of(self, value: Json) -> str:
        """Say where a part of a value came from; an empty text if nowhere."""
        return self._lost or self._trace(value)[1]

    def _trace(self, value: Json) -> tuple[str, str]:
        """Return where something stands in a value that came from somewhere, and from where."""
        for path, text in _leaves(value, "", 0):
            for mark in chain(_marks(text), _marks_in_addresses(text)):
                if origin := self._seen.get(mark):
                    return path, origin
        return "", ""


class SessionTaints:
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
            lost = "the origin of this session's variables is unknown after a restart"
            known = self._sessions[session] = Taint(lost if has_state else "")
        self._sessions.move_to_end(session)
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return known


class TaintTracker:
    """Follows what untrusted upstreams answer to one run."""

    def __init__(
        self, taint: Taint, untrusted: frozenset[str], *, literals: Literals | None = None
    ) -> None:
        """Follow words; and, where `literals` are given, what does not stand in the program."""
        self.is_on = bool(untrusted) or literals is not None
        """Whether it follows anything at all."""
        self._taint = taint
        self._untrusted = untrusted
        self._literals = literals
        self._written: set[LiteralKey] = set()

    def note_written(self, text: str) -> None:
        """Take note of a text that stands in the program, and is no literal: a definition."""
        self._written.add(_literal(text))

    async def find(self, arguments: JsonObject, *, may_write: bool = False) -> str:
        """Say which argument is tainted, and from where; an empty text if none is."""
        found = await self._ask(self._taint.find, arguments)
        if found or not may_write or self._literals is None or self._taint.is_clean:
            return found
        written = self._literals() | self._written
        return await self._ask(partial(self._taint.find_computed, written), arguments)

    async def origin_of(self, value: list[Json]) -> str:
        """Say where a part of values came from; an empty text if nowhere."""
        return await self._ask(self._taint.origin_of, value)

    async def _ask(self, look: Callable[[_T], str], value: _T) -> str:
        """Look at a value: beside the event loop where it is so long that others would wait."""
        if not self._untrusted or self._taint.is_clean:
            return ""
        if _is_short(value):
            return look(value)
        return await anyio.to_thread.run_sync(look, value)

    async def learn(self, server: str, origin: str, value: Json, size: int) -> None:
        """Remember what a server answered, if it is untrusted; about `size` characters."""
        if server in self._untrusted:
            await self.learn_again(value, origin, size)

    async def learn_again(self, value: Json, origin: str, size: int) -> None:
        """Remember what came from an untrusted server once, and was kept."""
        if size <= _SHORT_CHARS:
            self._taint.learn(plain(value), origin)
        else:
            await anyio.to_thread.run_sync(self._taint.learn, value, origin)

    def keep(self, server: str, origin: str, keep: ArtifactSink) -> ArtifactSink:
        """Return who takes what is no value; of files that are text, their words are learned."""
        return _TaintingSink(keep, self._taint, origin) if server in self._untrusted else keep


class _TaintingSink:
    def __init__(self, keep: ArtifactSink, taint: Taint, origin: str) -> None:
        self._keep = keep
        self._taint = taint
        self._origin = origin

    def blob(self, blob: Blob, cover: Redact | None = None) -> Json:
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
            inner = f"{path}.{key[:_PATH_CHARS]}" if path else key[:_PATH_CHARS]
            if not key.isidentifier():  # most are names of fields, and nobody's words
                yield inner, key
            yield from _leaves(each, inner, depth + 1)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]", depth + 1)
    elif text := _text(value):
        yield path, text


def _text(value: Json) -> str:
    """Return a text, or a number that is told apart from others as one; nothing of all else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if not 10**4 <= abs(value) < 10**60:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _is_short(value: Json) -> bool:
    """Whether a value can be gone through at once, so that nobody else waits for long."""
    room = _SHORT_CHARS
    pending: list[Json] = [value]
    while pending and room >= 0:
        each = pending.pop()
        room -= 1 if each is None or isinstance(each, bool | int | float) else len(each) + 1
        if room >= 0 and isinstance(each, dict):
            room -= sum(map(len, each))
            pending.extend(each.values())
        elif room >= 0 and isinstance(each, list):
            pending.extend(each)
    return room >= 0


def _marks(text: str) -> Iterator[int]:
    words = _WORD.findall(text.casefold())
    if len(words) < _IN_A_ROW:
        whole = " ".join(words)
        if len(whole) >= _FEWEST_CHARS:
            yield hash(("whole", whole))
    yield from (hash(word) for word in words if _is_telling(word))
    for place in range(len(words) - _IN_A_ROW + 1):
        yield hash(tuple(words[place : place + _IN_A_ROW]))


def _marks_in_addresses(text: str) -> Iterator[int]:
    """Yield what may have been glued into an address, behind its host."""
    if "://" in text:
        for address in _ADDRESS.finditer(text.casefold()):
            parts = _PARTS.split(unquote(address[1]))
            yield from (hash(part) for part in parts if _is_telling(part))


def _is_telling(word: str) -> bool:
    return len(word) >= _FEWEST_TELLING and not _PLAIN.fullmatch(word)


def literals_in(nodes: Iterable[ast.AST]) -> frozenset[LiteralKey]:
    """Return the constants of a program, and the names of arguments; not pieces of f-strings."""
    nodes = list(nodes)
    pieces = {
        id(piece)
        for node in nodes
        if isinstance(node, ast.JoinedStr) and len(node.values) > 1
        for piece in node.values
    }
    return frozenset(_literals(node for node in nodes if id(node) not in pieces))


def _literals(nodes: Iterable[ast.AST]) -> Iterator[LiteralKey]:
    for node in nodes:
        match node:
            case ast.Constant(value=None | bool() | str() | int() | float() as value):
                yield _literal(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                yield _literal(-value)
            case ast.keyword(arg=str() as name):
                yield _literal(name)


def _literal(value: str | float | None) -> LiteralKey:
    kind = type(value)
    return (float if kind is int else kind), value


def _first_unwritten(arguments: JsonObject, literals: frozenset[LiteralKey]) -> str:
    """Return where the first value or key stands that is no literal; nothing if all are."""
    pending: list[tuple[str, Json]] = list(reversed(arguments.items()))
    while pending:
        path, value = pending.pop()
        if isinstance(value, list):
            pending.extend((f"{path}[{number}]", each) for number, each in enumerate(value))
        elif isinstance(value, dict):
            if any(_literal(key) not in literals for key in value):
                return path
            pending.extend((f"{path}.{key[:_PATH_CHARS]}", each) for key, each in value.items())
        elif _literal(value) not in literals:
            return path
    return ""
