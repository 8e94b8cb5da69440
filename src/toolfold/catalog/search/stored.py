"""Tools and terms kept as text, of which a search reads only what it touches."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias, overload

from toolfold.catalog.tool import ListedTool, Tool

Postings: TypeAlias = tuple[list[int], list[int]]


class StoredTools(Sequence[Tool]):
    """The tools that `tool_to_text` wrote, each read when it is asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._read: dict[int, Tool] = {}

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> Tool: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Tool]: ...
    def __getitem__(self, place: int | slice) -> Tool | Sequence[Tool]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self._texts))[place]
        if place not in self._read:
            self._read[place] = _tool_from_text(self._texts[place])
        return self._read[place]


class StoredTerms(Mapping[str, Postings]):
    """The postings of terms, each read when it is asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __getitem__(self, term: str) -> Postings:
        numbers, scores = self._texts[term].split(";")
        return [*map(int, numbers.split())], [*map(int, scores.split())]


def postings_to_text(postings: Postings) -> str:
    """Write the postings of a term for `StoredTerms`."""
    return ";".join(" ".join(map(str, column)) for column in postings)


def tool_to_text(tool: Tool) -> str:
    """Write a tool for `StoredTools`."""
    listed = {field.name: getattr(tool.listed, field.name) for field in fields(ListedTool)}
    stored = {"server": tool.server, "module": tool.module, "function": tool.function}
    return json.dumps({**stored, "listed": listed}, separators=(",", ":"))


def _tool_from_text(text: str) -> Tool:
    stored = json.loads(text)
    return Tool(**{**stored, "listed": ListedTool(**stored["listed"])})
