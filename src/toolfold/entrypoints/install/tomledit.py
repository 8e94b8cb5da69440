"""Find tables in TOML text, cut them out and put others in, and leave every other byte as it is."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\r\n]|\\.)*"'
    r"|'[^'\r\n]*'"
    r"|#[^\r\n]*"
    r"|\r?\n"
    r"|[\[\]{}]"
    r"|[^\s\[\]{}\"'#]+"
    r"|[ \t]+",
    re.DOTALL,
)
_DEPTH = {"[": 1, "{": 1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlStatement:
    """A table header or a key with its value: from the start of its line to the end of its last."""

    start: int
    end: int
    is_header: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table: its header and the statements below, without comments behind the last of them."""

    path: tuple[str, ...]
    start: int
    end: int
    statements: int


def statements(text: str) -> Iterator[TomlStatement]:
    """Yield the statements of a valid document, in order."""
    depth, start, first, line = 0, None, "", 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word.endswith("\n") and not word.startswith(('"', "'")):
            if depth == 0:
                if start is not None:
                    yield TomlStatement(start=start, end=token.end(), is_header=first == "[")
                start, line = None, token.end()
        elif not word.startswith(("#", " ", "\t")):
            if start is None:
                start, first = line, word
            depth += _DEPTH.get(word, 0)
    if start is not None:
        yield TomlStatement(start=start, end=len(text), is_header=first == "[")


def sections(text: str) -> list[Section]:
    """Return the tables of a valid document that have headers, in order."""
    found: list[Section] = []
    for statement in statements(text):
        if statement.is_header:
            path = header_path(text[statement.start : statement.end])
            found.append(Section(path=path, start=statement.start, end=statement.end, statements=0))
        elif found:
            last = found.pop()
            found.append(
                Section(
                    path=last.path,
                    start=last.start,
                    end=statement.end,
                    statements=last.statements + 1,
                )
            )
    return found


def spans(text: str, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return where a table stands with all tables below it; neighbours make one span."""
    found: list[tuple[int, int]] = []
    for section in sections(text):
        if section.path[: len(path)] != path:
            continue
        if found and not _statement_between(text[found[-1][1] : section.start]):
            found[-1] = (found[-1][0], section.end)
        else:
            found.append((section.start, section.end))
    return found


def cut(text: str, start: int, end: int) -> str:
    """Take out a span of lines, and the empty lines behind it where others stand before it."""
    left, right = text[:start], text[end:]
    if not left or re.search(r"\n[ \t]*\r?\n\Z", left):
        right = re.sub(r"\A(?:[ \t]*\r?\n)+", "", right)
    return left + right


def insert(text: str, at: int, piece: str, newline: str) -> str:
    """Put a table at the start of a line, or behind everything, with an empty line between."""
    left, right = text[:at], text[at:]
    if left and not left.endswith("\n"):
        left += newline
    if left.strip() and not right and not left.endswith(newline * 2):
        left += newline
    if right and not piece.endswith("\n"):
        piece += newline
    return left + piece + right


def header_path(header: str) -> tuple[str, ...]:
    """Return the keys that the header of a table names."""
    names: list[str] = []
    value: object = tomllib.loads(header)
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        [(name, value)] = value.items()
        names.append(name)
    return tuple(names)


def _statement_between(text: str) -> bool:
    return any(True for _ in statements(text))
