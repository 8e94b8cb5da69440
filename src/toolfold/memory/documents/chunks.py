"""Cut what a document says into chunks that the embedder reads whole.

A chunk never goes beyond the next heading. It ends where a paragraph or a sentence does, within a
sentence only if that is too long by itself. Nothing is left out and nothing is said twice, but for
the headings above a chunk: those it carries, so that it can be understood and found by itself.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from toolfold.memory.documents.kinds import Block

Measure: TypeAlias = Callable[[str], int]
"""How many word pieces a text has. Those of two texts with a space between them add up."""

MAX_PIECES: Final = 254
"""The embedder reads 256, and puts one before a text and one behind it."""

MAX_CHARS: Final = 2_000
"""A word of any length is one piece to the embedder."""

_MAX_LINE_PIECES: Final = 64
_MAX_LINE_CHARS: Final = 240
# A paragraph that does not fit begins a new chunk, if the present one is that full; else it is cut.
_FULL_ENOUGH: Final = 0.6
# To measure a text costs more than its length does, so short ones are not measured by themselves.
_MIN_CHARS: Final = 60
# No character is more than one piece.
_PART_CHARS: Final = 128
_ARROW: Final = " › "  # noqa: RUF001  # no text has it but a path of headings
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)\]]{0,3}\s+|[。！？]\s*|\n\s*")  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document."""

    content: str
    """The headings in one line, if there are any, then the text."""

    headings: tuple[str, ...] = ()
    """Those it stands under, the highest first."""

    page: int | None = None
    """On which it begins."""


def cut(blocks: Iterable[Block], measure: Measure) -> Iterator[Chunk]:
    """Give the chunks of a document, in order."""
    headings: list[tuple[int, str]] = []
    waiting: list[Block] = []
    is_said = True
    for block in blocks:
        if not block.level:
            waiting.append(block)
            continue
        is_deeper = bool(headings) and block.level > headings[-1][0]
        yield from _section(waiting, headings, measure, is_said=is_said or is_deeper)
        is_said = False
        waiting = []
        headings = [each for each in headings if each[0] < block.level]
        headings.append((block.level, block.text))
    yield from _section(waiting, headings, measure, is_said=is_said)


class _Unit(NamedTuple):
    text: str
    pieces: int
    page: int | None


_Paragraph: TypeAlias = list[_Unit]


def _section(
    blocks: list[Block], headings: list[tuple[int, str]], measure: Measure, *, is_said: bool
) -> Iterator[Chunk]:
    """Give the chunks below a heading; if there is no text, and nothing else says it, itself."""
    path = tuple(text for _, text in headings)
    line = _heading_line(path, measure)
    if not blocks and not is_said:
        yield Chunk(line, path)
    room = _Room(MAX_PIECES - measure(line), MAX_CHARS - len(line) - 1)
    paragraphs = (_paragraph(block, room, measure) for block in blocks)
    for units in _filled(paragraphs, room):
        text = "".join(unit.text for unit in units).strip()
        if text:
            yield Chunk(f"{line}\n{text}" if line else text, path, units[0].page)


def _heading_line(headings: tuple[str, ...], measure: Measure) -> str:
    """Return headings in one line; if they are too long, the lowest are what is kept."""
    line = _ARROW.join(headings)
    while len(line) > _MAX_LINE_CHARS or measure(line) > _MAX_LINE_PIECES:
        line = f"…{line[min(len(line) // 4, _MAX_LINE_CHARS) :].lstrip('… ')}"
    return line


@dataclass(frozen=True, slots=True)
class _Room:
    """How much fits into a chunk beside its headings."""

    pieces: int
    chars: int

    def has(self, pieces: int, chars: int) -> bool:
        return pieces <= self.pieces and chars <= self.chars


def _paragraph(block: Block, room: _Room, measure: Measure) -> _Paragraph:
    """Return the sentences of a block, each of which fits; with the white space behind them."""
    end = "\n" if block.text.endswith("\n") else "\n\n"
    sentences = chain.from_iterable(
        _fitting(sentence, room, measure) for sentence in _sentences(block.text.rstrip() + end)
    )
    return [_Unit(text, pieces, block.page) for text, pieces in sentences]


def _sentences(text: str) -> Iterator[str]:
    """Give sentences and lines with what follows them; short ones stay together."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end.end() - start >= _MIN_CHARS:
            yield text[start : end.end()]
            start = end.end()
    if start < len(text):
        yield text[start:]


def _fitting(sentence: str, room: _Room, measure: Measure) -> Iterator[tuple[str, int]]:
    """Give a sentence, or what it must be cut into: a few words, or parts of a word."""
    if len(sentence) <= room.chars:
        pieces = measure(sentence)
        if pieces <= room.pieces:
            yield sentence, pieces
            return
    for part in _parts(sentence):
        yield part, measure(part)


def _parts(text: str) -> Iterator[str]:
    """Cut at white space if there is some, at least so often that each part surely fits."""
    start = 0
    while len(text) - start > _PART_CHARS:
        end = start + _PART_CHARS
        space = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1
        yield text[start : space or end]
        start = space or end
    yield text[start:]


def _filled(paragraphs: Iterable[_Paragraph], room: _Room) -> Iterator[list[_Unit]]:
    """Give as many sentences at a time as fit."""
    filling = _Filling(room)
    for paragraph in paragraphs:
        if filling.is_full_enough() and not filling.has_room(paragraph):
            yield filling.take()
        for unit in paragraph:
            if filling.units and not filling.has_room([unit]):
                yield filling.take()
            filling.add(unit)
    if filling.units:
        yield filling.take()


class _Filling:
    """What goes into the next chunk."""

    def __init__(self, room: _Room) -> None:
        self.units: list[_Unit] = []
        self._room = room
        self._pieces = self._chars = 0

    def add(self, unit: _Unit) -> None:
        self.units.append(unit)
        self._pieces += unit.pieces
        self._chars += len(unit.text)

    def take(self) -> list[_Unit]:
        taken, self.units = self.units, []
        self._pieces = self._chars = 0
        return taken

    def has_room(self, units: Iterable[_Unit]) -> bool:
        pieces, chars = self._pieces, self._chars
        for unit in units:
            pieces += unit.pieces
            chars += len(unit.text)
            if not self._room.has(pieces, chars):
                return False
        return True

    def is_full_enough(self) -> bool:
        return (
            self._pieces >= self._room.pieces * _FULL_ENOUGH
            or self._chars >= self._room.chars * _FULL_ENOUGH
        )
