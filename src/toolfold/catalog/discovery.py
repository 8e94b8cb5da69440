"""Rank tools for a query, by the words they share."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from toolfold.catalog.binding import parameters_of
from toolfold.catalog.names import words
from toolfold.catalog.tool import Tool
from toolfold.jsontypes import Json

# BM25: how soon repeating a word stops to count, and how much long texts are held back.
_SATURATION = 1.2
_LENGTH_PENALTY = 0.5

_NAME_WEIGHT = 4.0
_SERVER_WEIGHT = 2.0
_DESCRIPTION_WEIGHT = 1.0
_PARAMETER_WEIGHT = 0.6
_NOTE_WEIGHT = 0.2

_EXACT_NAME = 1_000.0
_MAX_READ_CHARS = 4_000
_MAX_READ_VALUES = 50

_STOP_WORDS = frozenset(
    words("""
    a about all am an and any are as at be been but by can could do does for from had has have how i
    if in into is it its just let like may me mcp might my of on or our please should so some than
    that the their them then there these they this those to us using want was we were what when
    where which will with would you your
    """)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, best first, and the words of the query that occur nowhere."""

    hits: tuple[Tool, ...]
    unmatched: tuple[str, ...]


class ToolIndex:
    """The words of a set of tools. It does not change; build another when the tools do."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = sorted(tools, key=lambda tool: (tool.path, tool.server))
        self._names: dict[str, set[int]] = defaultdict(set)
        self._scores: dict[str, dict[int, float]] = defaultdict(dict)
        for number, tool in enumerate(self._tools):
            for spelling in (tool.function, tool.path, f"{tool.server}.{tool.listed.name}"):
                self._names[_squeezed(spelling)].add(number)
        self._weigh([_weighted_terms(tool) for tool in self._tools])

    def search(self, query: str, *, limit: int, server: str | None = None) -> SearchResult:
        """Return at most `limit` tools that share words with `query`, best first.

        A tool that `query` names comes before all others, in any spelling: `create_issue`,
        `github.create_issue`, `mcp__github__create_issue`. Equals are ordered by path. `server`,
        by its own name or its module's, leaves the tools of others out. A blank query finds all.
        """
        numbers = self._of(server)
        if not query.strip():
            return SearchResult(hits=self._best(dict.fromkeys(numbers, 0.0), limit), unmatched=())
        terms = _query_terms(query)
        scores: dict[int, float] = defaultdict(float)
        unmatched = []
        for term, word in terms.items():
            found = {n: score for n, score in self._scores.get(term, {}).items() if n in numbers}
            if not found:
                unmatched.append(word)
            for number, score in found.items():
                scores[number] += score
        for number in self._names.get(_squeezed(query), set()) & numbers:
            scores[number] += _EXACT_NAME
        return SearchResult(hits=self._best(scores, limit), unmatched=tuple(unmatched))

    def _of(self, server: str | None) -> set[int]:
        return {
            number
            for number, tool in enumerate(self._tools)
            if server is None or server in (tool.server, tool.module)
        }

    def _best(self, scores: dict[int, float], limit: int) -> tuple[Tool, ...]:
        ordered = sorted(scores, key=lambda number: (-scores[number], number))
        return tuple(self._tools[number] for number in ordered[:limit])

    def _weigh(self, weighted: list[dict[str, float]]) -> None:
        lengths = [sum(terms.values()) for terms in weighted]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        frequency = Counter(term for terms in weighted for term in terms)
        for number, terms in enumerate(weighted):
            length = 1 - _LENGTH_PENALTY + _LENGTH_PENALTY * lengths[number] / mean
            for term, weight in terms.items():
                rarity = math.log(1 + len(weighted) / frequency[term])
                saturated = weight * (_SATURATION + 1) / (weight + _SATURATION * length)
                self._scores[term][number] = rarity * saturated


def _weighted_terms(tool: Tool) -> dict[str, float]:
    weighted: dict[str, float] = defaultdict(float)
    for text, weight in _texts(tool):
        for word in words(text[:_MAX_READ_CHARS]):
            if word not in _STOP_WORDS:
                weighted[_stem(word)] += weight
    return weighted


def _texts(tool: Tool) -> Iterator[tuple[str, float]]:
    yield tool.listed.name, _NAME_WEIGHT
    yield tool.server, _SERVER_WEIGHT
    yield tool.listed.description, _DESCRIPTION_WEIGHT
    for parameter in parameters_of(tool).listed:
        yield parameter.name, _PARAMETER_WEIGHT
        for text in _notes(parameter.schema):
            yield text, _NOTE_WEIGHT


def _notes(schema: Json) -> Iterator[str]:
    """Give the description of a parameter and the values it may have."""
    if isinstance(schema, dict):
        values = schema.get("enum")
        texts = [schema.get("description"), *(values if isinstance(values, list) else [])]
        yield from (text for text in texts[:_MAX_READ_VALUES] if isinstance(text, str))


def _query_terms(query: str) -> dict[str, str]:
    """Return each term of `query` with the word it comes from, in order.

    A query that has no telling word, or is not in Latin letters, is one term that nothing matches.
    """
    terms: dict[str, str] = {}
    for word in words(query[:_MAX_READ_CHARS]):
        if word not in _STOP_WORDS:
            terms.setdefault(_stem(word), word)
    return terms or {"": query.strip()}


def _squeezed(name: str) -> str:
    """Write a name so that case, separators and the `mcp__` prefix of some clients do not count."""
    found = words(name)
    return "".join(found[1:] if found[:1] == ["mcp"] else found)


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    """Cut the common endings, so that `issues` meets `issue` and `creating` meets `create`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and any(vowel in stem for vowel in "aeiouy"):
            word = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
            break
    return word.removesuffix("e") if len(word) > 3 else word
