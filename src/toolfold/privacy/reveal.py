"""Put values in the place of their placeholders, where they may go. Pure."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject
from toolfold.privacy.placeholder_table import HiddenValue, PlaceholderTable, Scalar, is_findable
from toolfold.privacy.placeholders import LITERAL, Placeholder, find_placeholders
from toolfold.privacy.spans import Span

MAX_DEPTH: Final = 200
MAX_REVEALED_CHARS: Final = 16 * 1024 * 1024
_FARTHEST: Final = 100
_WORD: Final = re.compile(r"[^\W_]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """A value with what its placeholders stand for, and what became of them."""

    value: Json
    revealed: dict[str, int]
    """How many placeholders of each kind were revealed."""
    unknown: tuple[str, ...]
    """What is written like a placeholder and is none of this vault; left as it stands."""
    refused: tuple[str, ...]
    """Placeholders of kinds that are not allowed; left as they stand."""
    glued: tuple[HiddenValue, ...] = ()
    """Values that stand within a word now, with all of that word: `x[NAME_1]` is one."""
    unfindable: tuple[HiddenValue, ...] = ()
    """Values that are too short or too long to be found by themselves where they turn up again."""


class Revealer:
    """One value on its way out, and what becomes of its placeholders."""

    def __init__(
        self, table: PlaceholderTable, kinds: Collection[str], allowed: Collection[str] | None
    ) -> None:
        self._table = table
        self._kinds = kinds
        self._allowed = allowed
        self._chars = 0
        self._counts: dict[str, int] = {}
        self._unknown: dict[str, None] = {}
        self._refused: dict[str, None] = {}
        self._glued: dict[HiddenValue, None] = {}
        self._unfindable: dict[HiddenValue, None] = {}

    def all_of(self, value: Json) -> Revealed:
        """Return the value revealed. Raises as `Vault.reveal`."""
        revealed = self._reveal(value, 0)
        return Revealed(
            value=revealed,
            revealed=self._counts,
            unknown=tuple(self._unknown),
            refused=tuple(self._refused),
            glued=tuple(self._glued),
            unfindable=tuple(self._unfindable),
        )

    def _reveal(self, value: Json, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise too_deep()
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list):
            return [self._reveal(each, depth + 1) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _object(self, value: JsonObject, depth: int) -> JsonObject:
        revealed = {
            str(self._text(key)): self._reveal(each, depth + 1) for key, each in value.items()
        }
        if len(revealed) < len(value):
            raise BadInput(
                "Two keys of one object are the same once their placeholders are revealed. Use "
                "each value as a key once."
            )
        return revealed

    def _text(self, text: str) -> Scalar:
        parts: list[str] = []
        put: list[Span] = []
        position = length = 0
        for placeholder, start, end in find_placeholders(text, self._kinds):
            value = self._value(placeholder, text[start:end])
            if value is None:
                continue
            if (start, end) == (0, len(text)):
                return value
            parts += [text[position:start], str(value)]
            length += sum(map(len, parts[-2:]))
            put.append(Span(placeholder.kind, length - len(parts[-1]), length))
            position = end
            self._count(len(parts[-1]))
        if not parts:
            return text
        whole = "".join((*parts, text[position:]))
        self._note_glued(whole, put)
        return whole

    def _note_glued(self, text: str, put: list[Span]) -> None:
        for kind, start, end in put:
            first, last = start, end
            while _is_within_word(text, first) and start - first < _FARTHEST:
                first -= 1
            while _is_within_word(text, last) and last - end < _FARTHEST:
                last += 1
            if kind == LITERAL or (first, last) == (start, end):
                continue
            if _is_within_word(text, first) or _is_within_word(text, last):
                raise BadInput(
                    f"A placeholder of kind {kind} stands within a word of more than "
                    f"{_FARTHEST} letters. Put a space or another sign beside it."
                )
            self._glued[HiddenValue(kind, text[first:last])] = None

    def _value(self, placeholder: Placeholder, written: str) -> Scalar | None:
        value = self._table.value_of(placeholder)
        if value is None:
            self._unknown[written] = None
        elif placeholder.kind == LITERAL:
            return value
        elif self._allowed is not None and placeholder.kind not in self._allowed:
            self._refused[written] = None
        else:
            self._counts[placeholder.kind] = self._counts.get(placeholder.kind, 0) + 1
            if not is_findable(value):
                self._unfindable[HiddenValue(placeholder.kind, value)] = None
            return value
        return None

    def _count(self, chars: int) -> None:
        self._chars += chars
        if self._chars > MAX_REVEALED_CHARS:
            raise BadInput(
                f"More than {MAX_REVEALED_CHARS:,} characters would stand here in place of "
                "placeholders. Send fewer in one call."
            )


def may_hold_placeholders(value: Json, depth: int = 0) -> bool:
    """Whether there may be placeholders in a value, or it is too deep to tell."""
    if isinstance(value, str):
        return "[" in value
    if isinstance(value, dict):
        return depth >= MAX_DEPTH or any(
            "[" in key or may_hold_placeholders(each, depth + 1) for key, each in value.items()
        )
    if isinstance(value, list):
        return depth >= MAX_DEPTH or any(may_hold_placeholders(each, depth + 1) for each in value)
    return False


def _is_within_word(text: str, place: int) -> bool:
    around = text[max(0, place - 1) : place + 1]
    return 0 < place < len(text) and _WORD.fullmatch(around) is not None


def too_deep() -> BadInput:
    """Return what is raised for a value that is nested too deeply."""
    return BadInput(f"The value is nested more than {MAX_DEPTH} levels deep. Flatten it.")
