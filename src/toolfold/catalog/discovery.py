"""Rank tools for a query, by the words they share and, where vectors are at hand, by meaning."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from toolfold.catalog.lexical import WordIndex, index_words
from toolfold.catalog.query import intent
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.errors import StoreError
from toolfold.jsontypes import Json, JsonObject

# numpy costs 0.1 s to import, so who searches by words alone does without.
if TYPE_CHECKING:
    from toolfold.catalog.vectors import Embed, ToolVectors

# Another number for every change of what is stored, and of how words become terms.
_FORMAT = 1

_StoredTool: TypeAlias = tuple[str, str, str, dict[str, Any]]
_Stored: TypeAlias = tuple[
    list[_StoredTool], dict[str, list[int]], dict[str, tuple[list[int], list[int]]]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found, best first, and the words of the query that occur nowhere."""

    hits: tuple[Tool, ...]
    unmatched: tuple[str, ...]


class ToolIndex:
    """Search over a set of tools. It does not change; build another when the tools do."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        words: WordIndex | None = None,
        vectors: "ToolVectors | None" = None,
    ) -> None:
        self.tools = tuple(sorted(tools, key=lambda tool: (tool.path, tool.server)))
        """The tools in the order that numbers them."""
        self._words = words or index_words(self.tools)
        self._vectors = vectors

    def with_vectors(self, vectors: "ToolVectors") -> "ToolIndex":
        """Return an index that can search by meaning too.

        Raises:
            ValueError: They are the vectors of other tools than `tools` of this index.
        """
        if len(vectors.tools) != len(self.tools) or any(map(_is_other, vectors.tools, self.tools)):
            raise ValueError("These are vectors of other tools: make them of `index.tools`.")
        return ToolIndex(self.tools, words=self._words, vectors=vectors)

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
            return SearchResult(hits=self._hits(numbers, limit), unmatched=())
        wanted = intent(query)
        match = self._words.match(wanted, among=among)
        if self._vectors is None or embed is None:
            ranked = sorted(match.scores, key=lambda number: (-match.scores[number], number))
        else:
            ranked = self._vectors.ranked(wanted, match.scores, among=among, embed=embed)
        if named := [n for n in self._words.named(query) if among is None or n in among]:
            places = {number: place for place, number in enumerate(ranked)}
            named.sort(key=lambda number: places.get(number, len(places)))
        hits = self._hits(dict.fromkeys([*named, *ranked]), limit)
        return SearchResult(hits=hits, unmatched=match.unmatched)

    def to_json(self) -> JsonObject:
        """Return the tools and their words, for `from_json`; vectors are kept elsewhere."""
        return {
            "format": _FORMAT,
            "tools": [_tool_to_json(tool) for tool in self.tools],
            "names": {name: list(numbers) for name, numbers in self._words.names.items()},
            "terms": {
                term: [list(numbers), list(scores)]
                for term, (numbers, scores) in self._words.terms.items()
            },
        }

    @classmethod
    def from_json(cls, stored: Json) -> "ToolIndex":
        """Return the index that `to_json` wrote; it finds the same, without reading the tools anew.

        Raises:
            StoreError: It was written by another version, or is no index.
        """
        if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
            raise StoreError("The stored index is not of this version. Build it anew.")
        try:
            # Checked by its format only: to look at each number would cost more than building.
            tools, names, terms = cast(
                "_Stored", (stored["tools"], stored["names"], stored["terms"])
            )
            return cls(map(_tool_from_json, tools), words=WordIndex(names=names, terms=terms))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"The stored index is damaged: {error}. Build it anew.") from error

    def _numbers_of(self, server: str) -> set[int]:
        return {
            number for number, tool in enumerate(self.tools) if server in (tool.server, tool.module)
        }

    def _hits(self, numbers: Iterable[int], limit: int) -> tuple[Tool, ...]:
        return tuple(self.tools[number] for number in islice(numbers, limit))


def _is_other(left: Tool, right: Tool) -> bool:
    return left is not right


def _tool_to_json(tool: Tool) -> Json:
    listed = {field.name: getattr(tool.listed, field.name) for field in fields(ListedTool)}
    return [tool.server, tool.module, tool.function, listed]


def _tool_from_json(stored: _StoredTool) -> Tool:
    server, module, function, listed = stored
    return Tool(server=server, module=module, function=function, listed=ListedTool(**listed))
