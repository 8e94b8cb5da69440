"""What of a JSON value can be concealed: its keys, texts and numbers, piece by piece. Pure."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from toolfold.jsontypes import Json, JsonObject
from toolfold.privacy.fields import LIKELY_NAME, Field, FieldRules, is_plausible
from toolfold.privacy.placeholder_table import HiddenValue, Scalar
from toolfold.privacy.placeholders import LITERAL, find_placeholders
from toolfold.privacy.reveal import MAX_DEPTH, too_deep
from toolfold.privacy.spans import Span

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
