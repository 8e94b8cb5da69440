"""Put values in the place of their placeholders, where they may go. Pure."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject
from toolfold.privacy.fields import LIKELY_NAME, Field, FieldRules, is_plausible
from toolfold.privacy.placeholder_table import HiddenValue, PlaceholderTable, Scalar, is_findable
from toolfold.privacy.spans import LITERAL, Placeholder, Span, find_placeholders

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


_MAX_CLEAN: Final = 20_000
_SHORT: Final = 200


Piece: TypeAlias = tuple[Scalar, str | None]
"""A key, a text or a number, and the kind that a field rule gives it."""


class PiecePlan(NamedTuple):
    """What of a piece becomes placeholders."""

    value: Scalar
    spans: tuple[Span, ...]
    hidden: tuple[HiddenValue, ...]
    numbers: frozenset[tuple[int, int]] = frozenset()
    """Where numbers of JSON stand in the text: what stands for one is written as a string."""


class CleanTexts:
    """Texts in which nothing is found. It is forgotten when there is more to be found.

    No numbers: 1 and 1.0 are equal, and what is written of them is not.
    """

    def __init__(self) -> None:
        self._held: tuple[object, set[Piece]] = None, set()

    def texts(self, state: object) -> set[Piece]:
        """Return those that are known in a state."""
        held, texts = self._held
        if held != state:
            texts = set()
            self._held = state, texts
        return texts

    def add(self, clean: set[Piece], planned: Mapping[Piece, PiecePlan]) -> None:
        """Remember what turned out to be clean, of what is short and comes again."""
        if len(clean) > _MAX_CLEAN:
            clean.clear()
        clean.update(
            piece
            for piece, plan in planned.items()
            if not plan.hidden and len(str(piece[0])) < _SHORT
        )


def hidden_of(piece: Piece, spans: list[Span]) -> tuple[HiddenValue, ...]:
    """Return the values that spans of a text conceal, or the number that its field does."""
    value, kind = piece
    if isinstance(value, str):
        return tuple(HiddenValue(each.kind, value[each.start : each.end]) for each in spans)
    return (HiddenValue(kind, value),) if kind is not None and is_plausible(kind, value) else ()


def look_alikes(text: str, spans: list[Span], kinds: Collection[str]) -> list[Span]:
    """Return what only looks like a placeholder: it gets one, so that it comes back as it was.

    What overlaps personal data is left to that, which is not revealed to everybody.
    """
    ends = [span.end for span in spans]
    alike = []
    for _, start, end in find_placeholders(text, kinds):
        following = bisect_right(ends, start)
        if following == len(spans) or spans[following].start >= end:
            alike.append(Span(LITERAL, start, end))
    return alike


def pieces_of(value: Json, rules: FieldRules) -> list[Piece]:
    """Return what can be concealed, in the order in which `rebuilt` asks for it."""
    pieces: list[Piece] = []
    _gather(value, rules.root, None, pieces)
    return pieces


def _gather(value: Json, field: Field, inherited: str | None, pieces: list[Piece]) -> None:
    if len(field.path) > MAX_DEPTH:
        raise too_deep()
    kind = field.kind if field.is_decided else inherited
    if isinstance(value, dict | list):
        _gather_below(value, field, kind, pieces)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        pieces.append((value, kind_of_leaf(kind, value)))


def kind_of_leaf(kind: str | None, value: Scalar) -> str | None:
    """Return the kind of a value, where its field only says what it is likely to be."""
    if kind != LIKELY_NAME:
        return kind
    return "NAME" if is_plausible(kind, value) else None


def _gather_below(
    value: JsonObject | list[Json], field: Field, kind: str | None, pieces: list[Piece]
) -> None:
    if isinstance(value, list):
        items = field.items
        for each in value:
            _gather(each, items, kind, pieces)
        return
    kind = None if kind == LIKELY_NAME else kind
    for key, each in value.items():
        pieces.append((key, None))
        _gather(each, field.below(key, value), kind, pieces)


def rebuilt(value: Json, written: Iterator[Scalar]) -> Json:
    """Return a value with other pieces, in the order of `pieces_of`."""
    if isinstance(value, dict):
        return {str(next(written)): rebuilt(each, written) for each in value.values()}
    if isinstance(value, list):
        return [rebuilt(each, written) for each in value]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return next(written)
    return value
