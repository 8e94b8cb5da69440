"""What a tool answered, as guest code gets it: a value, a reference, or what is too large."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from toolfold.catalog.tool import Tool
from toolfold.jsontypes import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An image, a sound or a file that a tool returned; guest code holds only a reference."""

    mime_type: str
    base64: str

    @property
    def size_bytes(self) -> int:
        """About how large it is when decoded."""
        return len(self.base64) * 3 // 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's result as a value, and about how many characters it weighs."""

    value: Json
    size: int


@dataclass(frozen=True, slots=True)
class LargeAnswer:
    """A result that is not parsed, because it is too large to be a value."""

    size: int
    """About how many bytes it has."""
    chunks: Callable[[], Iterable[bytes]]
    """Yields it in UTF-8, piece by piece."""
    others: tuple[Json, ...] = ()
    """What came with it and is not text: references."""


Redact = Callable[[Callable[[], Iterable[bytes]]], Iterable[bytes]]
"""Changes a text, which can be read more than once, before it is handed on."""


class ArtifactSink(Protocol):
    """Takes what is no value, and returns what stands for it."""

    def blob(self, blob: Blob, cover: Redact | None = None) -> Json:
        """Take an image or a binary; if it is text, `cover` changes it."""

    async def large(self, tool: Tool, answer: LargeAnswer) -> Json:
        """Take what is too large."""
