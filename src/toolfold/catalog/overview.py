"""The tools of one server in the fewest words that let a model choose and call them. Pure.

```text
# shop: the SQLite database; started with /srv/shop.db
read_query(query: str) -> list[dict] or error text: Execute a SELECT query
list_tables() -> list[dict]
```

What all lines would repeat is said once, above them: the module, the type that most tools return,
and how their descriptions end. A description that only repeats the signature is left out.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from toolfold.catalog.binding import parameters_of
from toolfold.catalog.names import words
from toolfold.catalog.stubs import sentence, short_call
from toolfold.catalog.tool import Tool

_MAX_SENTENCE_CHARS: Final = 56
_MAX_RESULT_CHARS: Final = 52
_FEWEST: Final = 3
"""How many tools must have something in common before it is said above them."""
_NEW_WORDS: Final = 2
"""How many words a description must have that the signature has not."""

_TAIL: Final = re.compile(r"(?<=\w) (?:in|on|from|of|to|into|at|within|for) (?=the )")
_CLAUSE: Final = re.compile(
    r" (?:about|and|as|for|from|given|helpful|in|including|matching|or|so|that|to|using|via|"
    r"when|where|which|with)$"
)
_PLAIN: Final = frozenset(
    re.findall(
        r"\w+",
        """a about all an and any are as at be between by can existing entire for from get gets
        given in into is it its list lists multiple new of on one or provided return returns several
        show shows single specific specified that the their these this those to using via which
        with""",
    )
)
_STEM_CHARS: Final = 5


class OverviewLine(NamedTuple):
    """A tool, and what is known of it beyond its definition."""

    tool: Tool
    returns: str | None
    """What it returns, as a plain type; None if nobody knows."""
    marks: str = ""
    """What must be known before it is called."""
    example: str = ""
    """A text that it answered, if its answers are texts and one was recorded."""


def overview(
    module: str, lines: Sequence[OverviewLine], *, about: str, notes: Sequence[str]
) -> str:
    """Return the tools of a module, one a line, below one that says what they have in common."""
    said = {each.tool.function: sentence(each.tool, max_chars=200) for each in lines}
    tail = _shared_tail(list(said.values()))
    usual = _usual_result(lines)
    head = [about or tail, *notes, f"returns {usual} unless shown" if usual else ""]
    header = f"# {module}: {'; '.join(part for part in head if part)}".rstrip(": ")
    return "\n".join([header, *(_line(each, said, tail, usual) for each in lines)])


def _line(each: OverviewLine, said: Mapping[str, str], tail: str, usual: str) -> str:
    tool = each.tool
    returns = each.returns if each.returns and len(each.returns) <= _MAX_RESULT_CHARS else None
    if each.example:
        returns = f"{returns or 'str'} like {each.example!r}"
    elif usual:
        returns = None if returns == usual else returns or "Any"
    call = short_call(tool, tool.function) + (f" -> {returns}" if returns else "") + each.marks
    if each.example:  # which says more than a description
        return call
    text = _first_clauses(_without_tail(said[tool.function].rstrip("."), tail))
    return f"{call}: {text}" if _says_more(text, tool, tail) else call


def _first_clauses(text: str) -> str:
    """Return the beginning of a sentence that is too long, up to where a clause ends."""
    if len(text) <= _MAX_SENTENCE_CHARS:
        return text
    kept = text[: _MAX_SENTENCE_CHARS + 1]
    if (comma := kept.rfind(", ")) > _MAX_SENTENCE_CHARS // 2:
        return kept[:comma]
    count = len(kept.split(" ")) - 1
    for end in range(count, count // 2, -1):
        beginning = " ".join(text.split(" ")[: end + 1])
        if found := _CLAUSE.search(beginning):
            return beginning[: found.start()]
    return f"{' '.join(text.split(' ')[:count])}…"


def _usual_result(lines: Sequence[OverviewLine]) -> str:
    """Return what most tools return, if it is worth saying once."""
    counts = Counter(each.returns for each in lines if each.returns)
    usual, count = counts.most_common(1)[0] if counts else ("", 0)
    return usual if count > max(_FEWEST, len(lines) // 2) else ""


def _shared_tail(sentences: Sequence[str]) -> str:
    """Return how descriptions of several tools end: `the knowledge graph`."""
    tails = Counter(
        found
        for each in sentences
        for found in _tails(each.rstrip("."))
        if len(found) > len("the ")
    )
    common = [(count, len(tail), tail) for tail, count in tails.items() if count >= _FEWEST]
    count, _, tail = max(common, default=(0, 0, ""))
    return tail if count * 3 >= len(sentences) else ""


def _tails(text: str) -> list[str]:
    return [text[found.end() :] for found in _TAIL.finditer(text)]


def _without_tail(text: str, tail: str) -> str:
    if not tail or not text.endswith(f" {tail}"):
        return text
    start = text[: -len(tail)]
    found = list(_TAIL.finditer(text))
    return text[: found[-1].start()] if found and found[-1].end() == len(start) else text


def _says_more(text: str, tool: Tool, tail: str) -> bool:
    """Whether a description has words that neither the signature nor the header has."""
    named = " ".join([tool.path, tail, *(each.name for each in parameters_of(tool).listed)])
    known = {_stem(word) for word in words(named)}
    new = {_stem(word) for word in words(text) if word not in _PLAIN} - known
    return len(new) >= _NEW_WORDS


def _stem(word: str) -> str:
    return word[:_STEM_CHARS].rstrip("s")
