"""Conceal personal data in JSON values, and reveal it again."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from operator import attrgetter
from threading import Lock
from typing import Any, Final, Protocol

from toolfold.errors import StoreError
from toolfold.jsontypes import Json
from toolfold.privacy.detect import Detectors
from toolfold.privacy.fields import Field, FieldRules, is_plausible
from toolfold.privacy.placeholder_table import HiddenValue, PlaceholderTable, Scalar
from toolfold.privacy.reveal import (
    MAX_DEPTH,
    CleanTexts,
    Piece,
    PiecePlan,
    Revealed,
    Revealer,
    hidden_of,
    kind_of_leaf,
    look_alikes,
    pieces_of,
    rebuilt,
    too_deep,
)
from toolfold.privacy.spans import LITERAL, Span, merge, without_escapes

# JSON that stands in a text: which places of it are personal by their fields. Pure.
#
# A file that a tool returns as a text is a string in the answer, and often JSON itself. Places are
# found in the text as it is written, so that all else of it stays to the byte.

Find = Callable[[str], list[Span]]

_DEEPEST: Final = 3
"""How often JSON may stand in a string of JSON that stands in a string."""
_BEGINS: Final = re.compile(r"^[ \t\r\ufeff]*(?=[\[{])", re.MULTILINE)
_SCALAR: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?(?:\d[\d.eE+-]*|Infinity)|NaN', re.DOTALL
)
_WRITTEN: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


class _Object(list[tuple[str, Any]]):
    """An object of JSON with every key, also one that is there twice."""


_decode: Final = json.JSONDecoder(object_pairs_hook=_Object).raw_decode


def find_in_json(text: str, rules: FieldRules, find: Find, *, depth: int = 0) -> list[Span]:
    """Return what is personal in the JSON within a text, by its fields or by `find`.

    `find` looks through strings that are written with escapes; others it sees in the text itself.

    Raises:
        BadInput: The JSON is nested too deeply.
    """
    spans: list[Span] = []
    for start, end, value in _blocks(text):
        tokens = _SCALAR.finditer(text, start, end)
        for token, leaf, kind in _leaves(value, rules.root, None, tokens):
            if is_plausible(kind, leaf):
                quote = int(isinstance(leaf, str))
                spans.append(Span(str(kind), token.start() + quote, token.end() - quote))
            elif isinstance(leaf, str):
                spans += _within(token, leaf, rules, find, depth)
    return [span for span in spans if span.start < span.end]


def numbers_in_json(text: str) -> frozenset[tuple[int, int]]:
    """Return where numbers stand in the JSON within a text: a placeholder there needs quotes."""
    return frozenset(
        token.span()
        for start, end, _ in _blocks(text)
        for token in _SCALAR.finditer(text, start, end)
        if token[0][0] != '"'
    )


def _blocks(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the objects and lists that begin a line, with their places.

    What is none costs as long as it takes to find that out. Once that is too long, only what ends
    in its own line is looked for.
    """
    position, budget = 0, 4 * len(text)
    has_any = "{" in text or "[" in text
    while has_any and (begins := _BEGINS.search(text, position)):
        start = begins.end()
        line_end = text.find("\n", start) % (len(text) + 1)
        try:
            if budget > 0:
                value, end = _decode(text, start)
            else:
                value, length = _decode(text[start:line_end])
                end = start + length
        except (json.JSONDecodeError, RecursionError) as error:
            budget -= getattr(error, "pos", len(text)) - start
            position = line_end
            continue
        yield start, end, value
        position = end


def _leaves(
    value: Any, field: Field, inherited: str | None, tokens: Iterator[re.Match[str]]
) -> Iterator[tuple[re.Match[str], Any, str | None]]:
    """Yield keys, texts and numbers with their places and kinds, as they are written."""
    if len(field.path) > MAX_DEPTH:
        raise too_deep()
    kind = field.kind if field.is_decided else inherited
    if isinstance(value, _Object):
        siblings = [key for key, _ in value]
        for key, each in value:
            yield next(tokens), key, None
            yield from _leaves(each, field.below(key, siblings), kind, tokens)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, field.items, kind, tokens)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield next(tokens), value, kind_of_leaf(kind, value)


def _within(
    token: re.Match[str], leaf: str, rules: FieldRules, find: Find, depth: int
) -> Iterator[Span]:
    """Yield what is personal within a string that is not personal as a whole."""
    is_escaped = len(token[0]) != len(leaf) + 2
    found = find(leaf) if is_escaped else []
    if depth < _DEEPEST:
        found += find_in_json(leaf, rules, find, depth=depth + 1)
    if not found:
        return
    places = [match.start() for match in _WRITTEN.finditer(token[0], 1, len(token[0]) - 1)]
    places.append(len(token[0]) - 1)
    for kind, start, end in found:
        yield Span(kind, token.start() + places[start], token.start() + places[end])


# Find again, in one answer alone, what was sent for it. Pure.
#
# A value that is short stands in too many texts to be looked for everywhere; where it was just
# sent, it is likely to come back.

_SHORT: Final = 4


class SentValues:
    """The values that are looked for."""

    def __init__(self, values: Collection[HiddenValue]) -> None:
        self._texts = {str(value).casefold(): kind for kind, value in values if str(value)}
        self._numbers = {value: kind for kind, value in values if not isinstance(value, str)}
        # As they were written: `ß` is two letters in another case, which no pattern finds.
        longest = sorted({str(value) for _, value in values} - {""}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_written, longest)), re.IGNORECASE)

    def find(self, text: str) -> list[Span]:
        """Return where they stand in a text; short ones only as whole words."""
        if not self._texts:
            return []
        some = next(iter(self._texts.values()))
        return [
            Span(self._texts.get(match[0].casefold(), some), *match.span())
            for each in {text, without_escapes(text)}
            for match in self._pattern.finditer(each)
        ]

    def kind_of(self, number: float) -> str | None:
        """Return the kind of a number that is looked for; None if it is not."""
        return self._numbers.get(number)


def _written(text: str) -> str:
    pattern = re.escape(text)
    return rf"(?<![^\W_]){pattern}(?![^\W_])" if len(text) < _SHORT else pattern


class VaultEntries(Protocol):
    """Keeps the entries of a vault. Whoever calls it holds the vault's lock."""

    def keep(self, table: PlaceholderTable, wanted: Iterable[HiddenValue]) -> None:
        """Have an entry in the book for each value; when this returns, they are kept.

        Where there is no room, the older half of the entries is given up, or more of them.

        Raises:
            StoreError: They could not be kept, or are too many at once.
        """

    def follow(self, table: PlaceholderTable) -> None:
        """Take over what other processes have kept meanwhile.

        Raises:
            StoreError: It cannot be read.
        """


class TransientEntries:
    """Keeps entries as long as the vault itself lives."""

    def keep(self, table: PlaceholderTable, wanted: Iterable[HiddenValue]) -> None:
        """Have an entry in the book for each value."""
        wanted = list(wanted)
        if not table.has_room(wanted):
            table.become(table.rolled_over(wanted))
        for entry in table.draft(wanted):
            table.add(entry)

    def follow(self, table: PlaceholderTable) -> None:
        """Nobody else writes here."""


class Vault:
    """Personal data of one scope, behind placeholders. Any thread may use it."""

    def __init__(
        self,
        *,
        detectors: Detectors | None = None,
        entries_store: VaultEntries | None = None,
        table: PlaceholderTable | None = None,
    ) -> None:
        self._detectors = detectors or Detectors()
        self._own_kinds = _BUILTIN_RULES.kinds | {LITERAL, *self._detectors.kinds}
        self._entries_store = entries_store or TransientEntries()
        self._table = PlaceholderTable() if table is None else table
        self._keeping = Lock()
        self._clean = CleanTexts()

    def conceal(
        self,
        value: Json,
        *,
        fields: FieldRules | None = None,
        again: Collection[HiddenValue] = (),
    ) -> Json:
        """Return the value with a placeholder for everything personal in it, keys included.

        `again` are values to look for that are too short to be looked for everywhere. When this
        returns, all of it can be revealed again, by any process that shares the vault.

        Raises:
            BadInput: The value is nested too deeply, or something in it is too large to be kept.
            StoreError: What is concealed could not be kept.
        """
        plans = self._plans(value, fields, again)
        if self._has_new(plans):
            with self._keeping:
                self._entries_store.keep(
                    self._table, [each for plan in plans for each in plan.hidden]
                )
        return self._rewritten(value, plans)

    def conceal_known(
        self,
        value: Json,
        *,
        fields: FieldRules | None = None,
        again: Collection[HiddenValue] = (),
    ) -> tuple[bool, Json]:
        """Return whether all that is personal in a value is kept already, and if so `conceal` it.

        Nothing is written, so nothing is waited for.

        Raises:
            BadInput: The value is nested too deeply.
        """
        plans = self._plans(value, fields, again)
        return (False, None) if self._has_new(plans) else (True, self._rewritten(value, plans))

    def conceal_text(self, text: str) -> str:
        """Return a text with a placeholder for everything personal in it. Raises as `conceal`."""
        concealed = self.conceal(text)
        return concealed if isinstance(concealed, str) else text

    def reveal(self, value: Json, *, allowed_kinds: Collection[str] | None = None) -> Revealed:
        """Return the value with what its placeholders stand for; None allows every kind.

        A placeholder that is all of a string becomes the value with its own type.

        Raises:
            BadInput: It is nested too deeply, grows too large, or two keys become one.
            StoreError: What others have concealed cannot be read.
        """
        revealed = self._revealed(value, allowed_kinds)
        if revealed.unknown:
            with self._keeping:
                self._entries_store.follow(self._table)
            revealed = self._revealed(value, allowed_kinds)
        if self._has_glued(revealed):
            with self._keeping:  # or they would come back as words that nobody knows
                self._entries_store.keep(self._table, revealed.glued)
        return revealed

    def reveal_known(
        self, value: Json, *, allowed_kinds: Collection[str] | None = None
    ) -> Revealed | None:
        """Return what `reveal` would; None if something is to be read or kept for that.

        Nothing is waited for.

        Raises:
            BadInput: It is nested too deeply, grows too large, or two keys become one.
        """
        revealed = self._revealed(value, allowed_kinds)
        return None if revealed.unknown or self._has_glued(revealed) else revealed

    def __len__(self) -> int:
        return len(self._table)

    @property
    def counts(self) -> dict[str, int]:
        """How many values of each kind there are."""
        return self._table.counts

    def _plans(
        self, value: Json, fields: FieldRules | None, again: Collection[HiddenValue]
    ) -> list[PiecePlan]:
        """Return a plan for each piece of a value; none at all if nothing of it is concealed."""
        rules = fields or _BUILTIN_RULES
        pieces = pieces_of(value, rules)
        clean = set() if again else self._clean.texts((self._table.state, rules))
        fresh = [piece for piece in pieces if piece not in clean]
        if not fresh:
            return []
        found, has_learned = self._find(fresh, rules)
        # What was found may stand in the others as well.
        looked = dict.fromkeys(pieces) if has_learned else found
        kinds, sent_values = rules.kinds | self._kinds, SentValues(again)
        planned = {
            piece: self._planned(piece, found.get(piece, []), kinds, sent_values)
            for piece in looked
            if isinstance(piece[0], str)
        }
        if not again:
            self._clean.add(clean, planned)
        plans = [planned.get(piece) or self._other(piece, sent_values) for piece in pieces]
        return plans if any(plan.hidden for plan in plans) else []

    def _revealed(self, value: Json, allowed_kinds: Collection[str] | None) -> Revealed:
        return Revealer(self._table, self._kinds, allowed_kinds).all_of(value)

    def _has_glued(self, revealed: Revealed) -> bool:
        return any(self._table.placeholder_of(each) is None for each in revealed.glued)

    def _has_new(self, plans: list[PiecePlan]) -> bool:
        return any(
            self._table.placeholder_of(each) is None for plan in plans for each in plan.hidden
        )

    def _rewritten(self, value: Json, plans: list[PiecePlan]) -> Json:
        if not any(plan.hidden for plan in plans):
            return value
        return rebuilt(value, iter([self._written(plan) for plan in plans]))

    @property
    def _kinds(self) -> frozenset[str]:
        known = self._table.kinds
        return self._own_kinds if known <= self._own_kinds else self._own_kinds | known

    def _find(
        self, pieces: Iterable[Piece], rules: FieldRules
    ) -> tuple[dict[Piece, list[Span]], bool]:
        """Return what is found in texts, and whether there is anything to look for elsewhere.

        Rows have the same keys over and over, so equal texts are looked at once.
        """
        found: dict[Piece, list[Span]] = {}
        has_learned = False
        for piece in pieces:
            if isinstance(piece[0], str) and piece not in found:
                found[piece] = self._found(piece, rules)
            for hidden in hidden_of(piece, found.get(piece, [])):
                self._table.learn(hidden)
                has_learned = True
        return found, has_learned

    def _found(self, piece: Piece, rules: FieldRules) -> list[Span]:
        value, kind = str(piece[0]), piece[1]
        if kind is not None and is_plausible(kind, value):
            return [Span(kind, 0, len(value))]
        found = self._detectors.find(value)
        embedded = find_in_json(value, rules, self._detectors.find)
        return merge([*found, *embedded], self._detectors.rank) if embedded else found

    def _planned(
        self, piece: Piece, found: list[Span], kinds: Collection[str], sent_values: SentValues
    ) -> PiecePlan:
        value = str(piece[0])
        spans = [*found, *sent_values.find(value)]
        if len(spans) != 1 or spans[0][1:] != (0, len(value)):
            spans = merge([*spans, *self._table.known.find(value)], self._detectors.rank)
            spans = sorted([*spans, *look_alikes(value, spans, kinds)], key=_start)
        numbers = numbers_in_json(value) if spans else frozenset()
        return PiecePlan(value, tuple(spans), hidden_of(piece, spans), numbers)

    def _other(self, piece: Piece, sent_values: SentValues) -> PiecePlan:
        """Return the plan of a number, or of a text that is clean."""
        value, kind = piece
        if isinstance(value, str):
            return PiecePlan(value, (), ())
        if not is_plausible(kind, value):
            kind = self._table.kind_of_number(value) or sent_values.kind_of(value)
        return PiecePlan(value, (), hidden_of((value, kind), []))

    def _written(self, plan: PiecePlan) -> Scalar:
        placeholders = [self._placeholder(each) for each in plan.hidden]
        if not isinstance(plan.value, str):
            return placeholders[0] if placeholders else plan.value
        parts, position = [], 0
        for span, placeholder in zip(plan.spans, placeholders, strict=True):
            is_number = (span.start, span.end) in plan.numbers
            parts += [plan.value[position : span.start]]
            parts += [f'"{placeholder}"' if is_number else placeholder]
            position = span.end
        return "".join((*parts, plan.value[position:]))

    def _placeholder(self, hidden: HiddenValue) -> str:
        placeholder = self._table.placeholder_of(hidden)
        if placeholder is None:  # another thread has just given it up
            raise StoreError(
                "The vault dropped its oldest values during this run. Run the code again."
            )
        return str(placeholder)


_start: Final = attrgetter("start")
_BUILTIN_RULES: Final = FieldRules()
