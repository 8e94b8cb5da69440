"""Edit one object in JSON text that people write, and leave every other byte as it is.

An *object text* is what stands from `{` to `}`; a *member text* is `"name": value`. Both may hold
comments and trailing commas.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from toolfold.config.jsonc import strip_comments
from toolfold.jsontypes import Json

_SPACE = re.compile(r"[ \t\r\n]*")
_GAP = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*+", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n)?")
_COMMA_AND_COMMENT = re.compile(r"[ \t]*(,?)(?:[ \t]*//[^\r\n]*)?")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Where one member of an object stands in its text."""

    name: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How what is added shall look: line ending, one step of indentation, that of the object."""

    newline: str
    """Empty where the document stands on one line."""

    step: str
    outer: str

    @property
    def separator(self) -> str:
        """What stands before a member."""
        return f"{self.newline}{self.outer}{self.step}" if self.newline else ""

    def render(self, value: Json) -> str:
        """Write a value that begins in the middle of a member's line."""
        indent = self.step if self.newline else None
        text = json.dumps(value, indent=indent, ensure_ascii=False)
        if not _is_encodable(text):
            text = json.dumps(value, indent=indent)
        return text.replace("\n", self.separator)


def members(text: str) -> list[Member]:
    """Return the members of the object that begins at the first brace of `text`, in order."""
    plain = _plain(text)
    found: list[Member] = []
    at = _skip_space(plain, plain.index("{") + 1)
    while plain[at] != "}":
        name, end = _DECODER.raw_decode(plain, at)
        value = _skip_space(plain, _skip_space(plain, end) + 1)  # behind the colon
        _, stop = _DECODER.raw_decode(plain, value)
        found.append(Member(name=name, start=at, value=value, end=stop))
        at = _skip_space(plain, stop)
        if plain[at] == ",":
            at = _skip_space(plain, at + 1)
    return found


def member_text(name: str, value_text: str) -> str:
    """Return a member as it is written."""
    quoted = json.dumps(name, ensure_ascii=False)
    return f"{quoted if _is_encodable(quoted) else json.dumps(name)}: {value_text}"


def swap(text: str, name: str, replacement: str) -> str:
    """Put a member text where the member `name` stands."""
    member = _member(text, name)
    return text[: member.start] + replacement + text[member.end :]


def append(text: str, addition: str, layout: Layout, *, after: str | None = None) -> str:
    """Add a member text behind the member `after`, or behind the last one."""
    present = members(text)
    if not present:
        return _fill(text, addition, layout)
    anchor = present[-1] if after is None else _member(text, after)
    separator = _separator(text, present[0]) or layout.separator or " "
    if not separator.startswith(("\r", "\n")):
        return f"{text[: anchor.end]},{separator}{addition}{text[anchor.end :]}"
    return _append_line(text, anchor.end, separator + addition)


def drop(text: str, name: str) -> str:
    """Take out a member, its comma, and the line that is empty without them."""
    present = members(text)
    index = next(i for i, member in enumerate(present) if member.name == name)
    member = present[index]
    comma = _comma(text, member.end)
    if comma is None and index > 0:
        comma = _comma(text, present[index - 1].end)
    cuts = [(member.start, member.end)]
    if comma is not None:
        cuts = _joined(text, sorted([*cuts, (comma, comma + 1)]))
    for start, end in reversed(cuts):
        text = _cut(text, start, end)
    return _collapsed(text)


def find_layout(document: str, depth: int) -> Layout:
    """Guess how a document is laid out, for an object that lies `depth` objects deep."""
    if "\n" not in document.strip() and document.strip() != "{}":
        return Layout(newline="", step="", outer="")
    newline = "\r\n" if "\r\n" in document else "\n"
    first = re.search(r"\{[ \t]*\r?\n([ \t]+)\S", document)
    step = first[1] if first else "  "
    return Layout(newline=newline, step=step, outer=step * depth)


def _member(text: str, name: str) -> Member:
    return next(member for member in members(text) if member.name == name)


def _fill(text: str, addition: str, layout: Layout) -> str:
    """Put the first member into an object; comments inside it stay behind the member."""
    brace, close = _inside(text)
    inside = text[brace:close]
    end = f"{layout.newline}{layout.outer}" if layout.newline and "\n" not in inside else ""
    return f"{text[:brace]}{layout.separator}{addition}{inside}{end}{text[close:]}"


def _append_line(text: str, end: int, line: str) -> str:
    """Add a line behind the one on which a member ends, so that its comment stays beside it."""
    tail = _COMMA_AND_COMMENT.match(text, end)
    stop = tail.end() if tail else end
    if tail and tail[1]:
        return f"{text[:stop]}{line},{text[stop:]}"
    return f"{text[:end]},{text[end:stop]}{line}{text[stop:]}"


def _separator(text: str, first: Member) -> str | None:
    """Return what stands before the members of a text that has them on lines of their own."""
    line = text.rfind("\n", 0, first.start) + 1
    if line == 0 or text[line : first.start].strip():
        return " " if line == 0 else None
    newline = "\r\n" if text[line - 2 : line] == "\r\n" else "\n"
    return newline + text[line : first.start]


def _comma(text: str, end: int) -> int | None:
    gap = _GAP.match(text, end)
    at = gap.end() if gap else end
    return at if text[at] == "," else None


def _joined(text: str, cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Make one cut of two that have only white space between them."""
    (start, middle), (after, end) = cuts
    return cuts if text[middle:after].strip() else [(start, end)]


def _cut(text: str, start: int, end: int) -> str:
    left, rest = text[:start], _REST_OF_LINE.match(text, end)
    after = rest.end() if rest else end
    bare = left.rstrip(" \t")
    begins_line, ends_line = bare.endswith("\n"), text[end:after].endswith("\n")
    if begins_line and ends_line:
        return bare + text[after:]
    if ends_line:
        return bare + text[end:].lstrip(" \t")
    return left + text[after if left.endswith((" ", "\t", "\n", "{")) else end :]


def _collapsed(text: str) -> str:
    brace, close = _inside(text)
    return text if text[brace:close].strip() else text[:brace] + text[close:]


def _inside(text: str) -> tuple[int, int]:
    plain = _plain(text)  # a comment before or behind the object may hold braces
    return plain.index("{") + 1, plain.rindex("}")


@lru_cache(maxsize=4)  # a file of megabytes is asked for its members several times
def _plain(text: str) -> str:
    return strip_comments(text)


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
