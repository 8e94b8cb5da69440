"""What of a JSON value can be concealed: its keys, texts and numbers, piece by piece. Pure."""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from toolfold.jsontypes import Json
from toolfold.privacy.book import Hidden, Scalar
from toolfold.privacy.fields import ITEM, LIKELY_NAME, FieldRules, Path, is_plausible
from toolfold.privacy.placeholders import LITERAL, find_placeholders
from toolfold.privacy.revealing import MAX_DEPTH, too_deep
from toolfold.privacy.spans import Span

_MOST_CLEAN: Final = 20_000
_SHORT: Final = 200


class Piece(NamedTuple):
    """A key, a text or a number, and the kind that a field rule gives it."""

    value: Scalar
    kind: str | None


class Plan(NamedTuple):
    """What of a piece becomes placeholders."""

    value: Scalar
    spans: tuple[Span, ...]
    hidden: tuple[Hidden, ...]


class Clean:
    """Pieces in which nothing is found. It is forgotten when there is more to be found."""

    def __init__(self) -> None:
        self._held: tuple[object, set[Piece]] = None, set()

    def pieces(self, state: object) -> set[Piece]:
        """Return those that are known in a state."""
        held, pieces = self._held
        if held != state:
            pieces = set()
            self._held = state, pieces
        return pieces

    def add(self, clean: set[Piece], pieces: list[Piece], plans: list[Plan]) -> None:
        """Remember what turned out to be clean, of what is short and comes again."""
        if len(clean) > _MOST_CLEAN:
            clean.clear()
        for piece, plan in zip(pieces, plans, strict=True):
            if not plan.hidden and (not isinstance(piece.value, str) or len(piece.value) < _SHORT):
                clean.add(piece)


def hidden_of(piece: Piece, spans: list[Span]) -> tuple[Hidden, ...]:
    """Return the values that spans of a text conceal, or the number that its field does."""
    value, kind = piece
    if isinstance(value, str):
        return tuple(Hidden(each.kind, value[each.start : each.end]) for each in spans)
    return (Hidden(kind, value),) if kind is not None and is_plausible(kind, value) else ()


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


def pieces_of(value: Json, path: Path, kind: str | None, rules: FieldRules) -> Iterator[Piece]:
    """Yield what can be concealed, in the order in which `rebuilt` asks for it."""
    if len(path) > MAX_DEPTH:
        raise too_deep()
    if isinstance(value, dict):
        for key, each in value.items():
            yield Piece(key, None)
            here = (*path, key)
            is_decided, below = rules.decide(here, value)
            inherited = None if kind == LIKELY_NAME else kind
            yield from pieces_of(each, here, below if is_decided else inherited, rules)
    elif isinstance(value, list):
        for each in value:
            yield from pieces_of(each, (*path, ITEM), kind, rules)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        if kind == LIKELY_NAME:
            kind = "NAME" if is_plausible(kind, value) else None
        yield Piece(value, kind)


def rebuilt(value: Json, written: Iterator[Scalar]) -> Json:
    """Return a value with other pieces, in the order of `pieces_of`."""
    if isinstance(value, dict):
        return {str(next(written)): rebuilt(each, written) for each in value.values()}
    if isinstance(value, list):
        return [rebuilt(each, written) for each in value]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return next(written)
    return value
