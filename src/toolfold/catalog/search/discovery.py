"""Rank tools for a query, by the words they share and, where vectors are at hand, by meaning."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, cast

from toolfold.catalog.names import words
from toolfold.catalog.search.lexical import (
    StoredTerms,
    StoredTools,
    WordIndex,
    index_words,
    intent,
    postings_to_text,
    tool_to_text,
)
from toolfold.catalog.tool import Tool
from toolfold.errors import StoreError
from toolfold.jsontypes import Json, JsonObject

# numpy costs 0.1 s to import, so who searches by words alone does without.
if TYPE_CHECKING:
    from toolfold.catalog.search.vectors import Embed, ToolVectors

# Another number for every change of what is stored, and of how words become terms.
_FORMAT = 1

# What is worth less than this share of the best hit is weak. Of 437 right tools among the first
# five of labelled queries, two were.
_WEAK_SHARE = 0.5
# What is built in comes behind a server's tool that is worth at least this share of it.
_OWN_SHARE = 0.85

_Stored: TypeAlias = tuple[list[str], dict[str, list[int]], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, best first, and the words of the query that occur nowhere."""

    hits: tuple[Tool, ...]
    unmatched: tuple[str, ...]
    worths: tuple[float, ...] = field(default=(), compare=False)
    """What each hit is worth, to be compared with the others of this search alone."""

    is_by_words_only: bool = field(default=False, compare=False)
    """Whether their meaning had no say in it, though it could have had."""

    def without(self, is_left_out: Callable[[Tool], bool]) -> "SearchResult":
        """Return the same without some hits."""
        return self._of([pair for pair in self._pairs() if not is_left_out(pair[0])])

    def clear(self, is_own: Callable[[Tool], bool]) -> "SearchResult":
        """Return the same without the weak hits behind a clear one.

        What is our own, by `is_own`, comes after tools of servers that are worth as much.
        """
        pairs = [
            (tool, worth * _OWN_SHARE if worth > 0 and is_own(tool) else worth)
            for tool, worth in self._pairs()
        ]
        pairs.sort(key=lambda pair: -pair[1])
        best = max((worth for _, worth in pairs if worth != math.inf), default=0.0)
        return self._of([pair for pair in pairs if best <= 0 or pair[1] >= best * _WEAK_SHARE])

    def _pairs(self) -> Iterable[tuple[Tool, float]]:
        return zip(self.hits, self.worths, strict=True)

    def _of(self, pairs: list[tuple[Tool, float]]) -> "SearchResult":
        hits, worths = tuple(tool for tool, _ in pairs), tuple(worth for _, worth in pairs)
        return replace(self, hits=hits, worths=worths)


class ToolIndex:
    """Search over a set of tools. It does not change; build another when the tools do."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        terms: WordIndex | None = None,
        vectors: "ToolVectors | None" = None,
    ) -> None:
        """Read the words of `tools`, unless `terms` are given: those of `tools` in this order."""
        if terms is None:
            tools = tuple(sorted(tools, key=lambda tool: (tool.path, tool.server)))
            terms = index_words(tools)
        self.tools = tools
        """The tools in the order that numbers them."""
        self._words = terms
        self._vectors = vectors

    def with_vectors(self, vectors: "ToolVectors") -> "ToolIndex":
        """Return an index that can search by meaning too.

        Raises:
            ValueError: They are the vectors of other tools than `tools` of this index.
        """
        if vectors.tools is not self.tools:
            raise ValueError("These are vectors of other tools: make them of `index.tools`.")
        return ToolIndex(self.tools, terms=self._words, vectors=vectors)

    def search(
        self,
        query: str,
        *,
        limit: int,
        server: str | None = None,
        embed: "Embed | None" = None,
    ) -> SearchResult:
        """Return at most `limit` tools for `query`, best first.

        A tool that `query` names comes before all others, in any spelling: `create_issue`,
        `github.create_issue`, `mcp__github__create_issue`. Equals are ordered by path. `server`,
        by its own name or its module's, leaves the tools of others out. A blank query finds all.

        By words alone, a tool that shares none with `query` is no hit. With vectors and `embed`,
        which turns texts into vectors of the same embedder, the nearest in meaning are; the words
        that occur in no tool are reported all the same. `embed` is called once, or not at all.
        """
        among = None if server is None else self._numbers_of(server)
        if not query.strip():
            numbers: Iterable[int] = range(len(self.tools)) if among is None else sorted(among)
            return self._result(dict.fromkeys(numbers, 0.0), limit)
        wanted = intent(query)
        match = self._words.match(wanted, among=among)
        if self._vectors is None or embed is None:
            best_first = sorted(match.scores, key=lambda number: (-match.scores[number], number))
            ranked: Mapping[int, float] = {number: match.scores[number] for number in best_first}
        else:
            ranked = self._vectors.ranked(wanted, match.scores, among=among, embed=embed)
        named = [n for n in self._words.named(query) if among is None or n in among]
        if len(named) > 1:
            places = {number: place for place, number in enumerate(ranked)}
            named.sort(key=lambda number: places.get(number, len(places)))
        return replace(
            self._result({**dict.fromkeys(named, math.inf), **_less(ranked, named)}, limit),
            unmatched=tuple(word for word in match.unmatched if _is_said(word, query)),
            is_by_words_only=self._vectors is None or embed is None,
        )

    def to_json(self) -> JsonObject:
        """Return the tools and their words, for `from_json`; vectors are kept elsewhere."""
        return {
            "format": _FORMAT,
            "tools": [tool_to_text(tool) for tool in self.tools],
            "names": {name: list(numbers) for name, numbers in self._words.names.items()},
            "terms": {term: postings_to_text(found) for term, found in self._words.terms.items()},
        }

    @classmethod
    def from_json(cls, stored: Json) -> "ToolIndex":
        """Return the index that `to_json` wrote; it finds the same.

        Tools are read when they are hits, so a damaged one shows itself only then.

        Raises:
            StoreError: It was written by another version.
        """
        if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
            raise StoreError("The stored index has another version. Rebuild it.")
        parts = tuple(stored.get(part) for part in ("tools", "names", "terms"))
        tools, names, terms = cast("_Stored", parts)
        return cls(StoredTools(tools), terms=WordIndex(names=names, terms=StoredTerms(terms)))

    def _numbers_of(self, server: str) -> set[int]:
        return {
            number for number, tool in enumerate(self.tools) if server in (tool.server, tool.module)
        }

    def _result(self, worths: Mapping[int, float], limit: int) -> SearchResult:
        first = dict(islice(worths.items(), limit))
        hits = tuple(self.tools[number] for number in first)
        return SearchResult(hits=hits, unmatched=(), worths=tuple(first.values()))


def _less(ranked: Mapping[int, float], named: list[int]) -> Mapping[int, float]:
    if not named:
        return ranked
    return {number: worth for number, worth in ranked.items() if number not in named}


def _is_said(word: str, query: str) -> bool:
    """Tell whether `word` is the user's own, and not our name for the kind of a file."""
    return word.lower() in query.lower() or word in words(query)
