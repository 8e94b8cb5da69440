"""What is read from a file, whatever kind it is. Standard library only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

DocumentKind: TypeAlias = Literal["pdf", "docx", "html", "markdown", "text", "csv", "json"]

MAX_TEXT_CHARS: Final = 20_000_000
"""Of one document. More would take a quarter of an hour to embed."""

MAX_HEADING_CHARS: Final = 200
"""What is longer is text, whatever the file says that it is."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a row, a list item, or a heading."""

    text: str
    """With a line break at its end, it is followed by the next without a blank line."""

    level: int = 0
    """Of a heading, from 1 for the highest; 0 for text."""

    page: int | None = None
    """From 1, where the file has pages."""


class DocumentContent(NamedTuple):
    """All that a file says, in order."""

    blocks: list[Block]
    title: str = ""
    pages: int | None = None


Reader: TypeAlias = Callable[[bytes], DocumentContent]


class Unreadable(Exception):
    """Why nothing can be read from a file: one sentence, and what to do if there is something."""


class Blocks:
    """Gathers blocks within what a document may hold."""

    def __init__(self) -> None:
        self.found: list[Block] = []
        self._chars = 0

    def add(self, text: str, *, level: int = 0, page: int | None = None) -> None:
        """Keep a block, unless it is blank.

        Raises:
            Unreadable: The document holds too much text.
        """
        text = readable(text)
        self._chars += len(text)
        if self._chars > MAX_TEXT_CHARS:
            raise Unreadable(
                f"It holds more than {MAX_TEXT_CHARS:,} characters of text. Split it into files."
            )
        if not text.strip():
            return
        if level and len(heading := " ".join(text.split())) <= MAX_HEADING_CHARS:
            self.found.append(Block(heading, level, page))
        else:
            self.found.append(Block(text, 0, page))


def readable(text: str) -> str:
    """Return a text without what no note can hold: NUL, and halves of surrogate pairs."""
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
