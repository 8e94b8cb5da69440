"""A dry run: what reads is called, all else is noted and answered with something that fits."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from toolfold.errors import count
from toolfold.execution.trust.approval_form import shown_arguments
from toolfold.jsontypes import JsonObject

_SHOWN_TOOLS: Final = 30
_SHOWN_CALLS: Final = 3


class DryRun:
    """The calls that a run would make."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._samples: dict[str, list[str]] = {}
        self._asked: set[str] = set()
        self._guessed = ""

    def note(self, tool: str, arguments: JsonObject, *, is_asked: bool, has_schema: bool) -> None:
        """Note a call that is not made, and whether its answer is made up by a schema."""
        self._counts[tool] += 1
        samples = self._samples.setdefault(tool, [])
        if len(samples) < _SHOWN_CALLS:
            samples.append(shown_arguments(arguments))
        if is_asked:
            self._asked.add(tool)
        if not self._guessed:
            made_up = "; a value made up from its schema was used" if has_schema else ""
            self._guessed = f"the real answer of {tool} is unknown{made_up}"

    def text(self) -> str:
        """Say what would be called, grouped and counted, and how far that is certain."""
        if not self._counts:
            return "Dry run: the code would call nothing that changes anything."
        total = self._counts.total()
        counted = count(total, "call")
        lines = [f"Dry run: nothing was changed. {counted} would be made:"]
        for tool in islice(self._counts, _SHOWN_TOOLS):
            lines += self._lines(tool)
        if len(self._counts) > _SHOWN_TOOLS:
            lines.append(f"  and {count(len(self._counts) - _SHOWN_TOOLS, 'other tool')}")
        lines.append(f"Results after the first of them are guesses: {self._guessed}.")
        return "\n".join(lines)

    def _lines(self, tool: str) -> Iterator[str]:
        asked = " (you would be asked first)" if tool in self._asked else ""
        yield f"  {tool}: {self._counts[tool]}{asked}"
        for sample in self._samples[tool]:
            yield f"    {sample}"
        if self._counts[tool] > _SHOWN_CALLS:
            yield f"    and {self._counts[tool] - _SHOWN_CALLS} more"
