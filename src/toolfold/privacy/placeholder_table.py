"""The entries of a vault: which placeholder stands for which value. Pure."""

import re
from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import BadInput, StoreError
from toolfold.privacy.spans import LITERAL, Placeholder, Span, normal_form, without_escapes

# Find again what is already concealed, wherever it stands. Pure.
#
# A detector needs a form, and a field rule a key. A name that came by a field is found by its words
# in every text after that; so is a phone number where nothing speaks of phones.

_WORD: Final = re.compile(r"[^\W_]+")  # `Ada_King.pdf` has three
_FEWEST_CHARS: Final = 4
_FEWEST_DIGITS: Final = 6  # or every year would be somebody's postal code
_MAX_CHARS: Final = 400
_MAX_WORDS: Final = 12
_WIDEST_GAP: Final = 3
_MAX_AT_A_LEAF: Final = 8


class _Value(NamedTuple):
    kind: str
    written: str
    lead: str
    tail: str


class _Node:
    """What may follow the words that lead here, and the values that end here.

    Most have one word that follows, or none: a table for each would take twice the memory.
    """

    __slots__ = ("_only", "_several", "values")

    def __init__(self) -> None:
        self._only: tuple[str, _Node] | None = None
        self._several: dict[str, _Node] | None = None
        self.values: tuple[_Value, ...] = ()

    @property
    def has_following(self) -> bool:
        return self._only is not None or self._several is not None

    def following(self, word: str) -> "_Node | None":
        if self._several is not None:
            return self._several.get(word)
        return self._only[1] if self._only is not None and self._only[0] == word else None

    def add(self, word: str) -> "_Node":
        """Return the node behind a word that follows."""
        node = self.following(word)
        if node is None:
            node = _Node()
            if self._several is not None:
                self._several[word] = node
            elif self._only is not None:
                self._several = {self._only[0]: self._only[1], word: node}
                self._only = None
            else:
                self._only = word, node
        return node


class KnownValues:
    """The values of a vault, by their words."""

    def __init__(self) -> None:
        self._first: dict[str, _Node] = {}
        self._added: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(self._added)

    def add(self, kind: str, written: str) -> None:
        """Find this value from now on, unless it is too short or too long to be told apart."""
        if (kind, written) in self._added or not can_be_known(written):
            return
        self._added.add((kind, written))
        words = list(_WORD.finditer(without_escapes(written)))
        node = self._first.setdefault(words[0][0].casefold(), _Node())
        for word in words[1:]:
            node = node.add(word[0].casefold())
        value = _Value(kind, written, written[: words[0].start()], written[words[-1].end() :])
        if len(node.values) < _MAX_AT_A_LEAF:
            node.values = (*node.values, value)

    def find(self, text: str) -> list[Span]:
        """Return where known values stand as whole words: the longest that begins at each word.

        Of several words, neither case nor what is between them matters; one alone is found as it
        is written.
        """
        if not self._first:
            return []
        plain = without_escapes(text)
        return self._found(text) if plain == text else [*self._found(text), *self._found(plain)]

    def _found(self, text: str) -> list[Span]:
        found = []
        for word in _WORD.finditer(text):
            node = self._first.get(word[0].casefold())
            if node is not None and (span := _longest(node, text, word)):
                found.append(span)
        return found


def can_be_known(written: str) -> bool:
    """Whether a value is told apart from ordinary words and numbers."""
    if (
        len(written) > _MAX_CHARS
        or not 0 < len(_WORD.findall(without_escapes(written))) <= _MAX_WORDS
    ):
        return False
    count = sum(map(str.isalnum, written))
    return count >= (_FEWEST_DIGITS if written.strip().isdigit() else _FEWEST_CHARS)


def _longest(node: _Node, text: str, first: re.Match[str]) -> Span | None:
    best = None
    end = first.end()
    is_alone = True
    while True:
        best = _ending(node, text, first.start(), end, is_alone=is_alone) or best
        word = _WORD.search(text, end, end + _WIDEST_GAP + 1) if node.has_following else None
        # The search ends within the word, so that a long gap costs nothing.
        word = word and _WORD.match(text, word.start())
        following = node.following(word[0].casefold()) if word else None
        if word is None or following is None:
            return best
        node, end, is_alone = following, word.end(), False


def _ending(node: _Node, text: str, start: int, end: int, *, is_alone: bool) -> Span | None:
    for kind, written, lead, tail in node.values:
        begins = start - len(lead) if text.endswith(lead, 0, start) else start
        ends = end + len(tail) if text.startswith(tail, end) else end
        if not is_alone or text[begins:ends] == written:
            return Span(kind, begins, ends)
    return None


Scalar: TypeAlias = str | int | float

MAX_VALUES: Final = 200_000
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_VALUE_BYTES: Final = 1024 * 1024
_MAX_BITS: Final = 4_000
_MAX_NUMBER: Final = 20
# Numbers that are not this large stand for too many things to be looked for everywhere.
_LEAST_KNOWN_NUMBER: Final = 1_000_000


class HiddenValue(NamedTuple):
    """A value that shall have a placeholder."""

    kind: str
    value: Scalar


class PlaceholderEntry(NamedTuple):
    """A value that has one."""

    placeholder: Placeholder
    value: Scalar


class PlaceholderTable:
    """Entries, found by either side. Numbers are given in the order of appearance.

    Numbers begin after `base`, so that a vault which was emptied never uses one twice.
    """

    def __init__(self, *, base: int = 0) -> None:
        self.known = KnownValues()
        self.base = base
        self._bytes = 0
        self._values: dict[Placeholder, Scalar] = {}
        self._placeholders: dict[tuple[str, str], Placeholder] = {}
        self._latest: dict[tuple[str, str], Placeholder] = {}
        self._counts: dict[str, int] = {}
        self._numbers: dict[int | float, str] = {}

    def __len__(self) -> int:
        return len(self._values)

    def value_of(self, placeholder: Placeholder) -> Scalar | None:
        """Return what a placeholder stands for; None if it is not one of ours."""
        return self._values.get(placeholder)

    def placeholder_of(self, hidden: HiddenValue) -> Placeholder | None:
        """Return what stands for exactly this value; None if nothing does yet."""
        return self._placeholders.get((hidden.kind, _spelled(hidden.value)))

    def kind_of_number(self, number: float) -> str | None:
        """Return the kind of a large number that is concealed elsewhere."""
        return self._numbers.get(number)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that have entries."""
        return frozenset(self._counts)

    @property
    def state(self) -> tuple[int, int, int, int]:
        """What changes whenever there is more to be found, or another kind."""
        return self.base, len(self.known), len(self._numbers), len(self._counts)

    @property
    def counts(self) -> dict[str, int]:
        """How many entries each kind has."""
        return dict(Counter(placeholder.kind for placeholder in self._values))

    def draft(self, wanted: Iterable[HiddenValue]) -> list[PlaceholderEntry]:
        """Return new entries for the values that have none. The book is as before.

        Raises:
            BadInput: A value is too large to be kept.
            StoreError: The book is full.
        """
        missing = self._missing(wanted)
        if not self._fits(missing):
            raise StoreError(
                f"{len(missing):,} values at once are more than a vault conceals: at most "
                f"{MAX_VALUES:,}, and {MAX_BYTES:,} bytes. Ask for less: a page, fewer fields."
            )
        numbering = _Numbering(self._latest, self._counts, self.base)
        return [PlaceholderEntry(numbering.next(each), each.value) for each in missing.values()]

    def has_room(self, wanted: Iterable[HiddenValue]) -> bool:
        """Whether `draft` would have room. Raises BadInput: A value is too large to be kept."""
        return self._fits(self._missing(wanted))

    def rolled_over(self, wanted: Collection[HiddenValue]) -> "PlaceholderTable":
        """Return a table that goes on from this one with the newest of its entries.

        At most half of the room is taken, and less where `wanted` need more. The placeholders of
        the others stand for nothing from then on: their numbers are not given again.
        """
        # Those among the wanted that have an entry may lose it.
        needed = {(each.kind, _spelled(each.value)): _checked_size(each) for each in wanted}
        most = min(MAX_VALUES // 2, MAX_VALUES - len(needed))
        most_bytes = min(MAX_BYTES // 2, MAX_BYTES - sum(needed.values()))
        kept: list[PlaceholderEntry] = []
        size = 0
        for entry in self.newest_first:
            size += len(_spelled(entry.value))
            if len(kept) >= most or size > most_bytes:
                break
            kept.append(entry)
        table = PlaceholderTable(base=self.base + MAX_VALUES)
        for entry in reversed(kept):
            table.add(entry)
        return table

    @property
    def newest_first(self) -> Iterator[PlaceholderEntry]:
        """All entries."""
        return (PlaceholderEntry(*each) for each in reversed(self._values.items()))

    def become(self, table: "PlaceholderTable") -> None:
        """Be another table from now on, for all who hold this one."""
        self.__dict__ = table.__dict__

    def _missing(self, wanted: Iterable[HiddenValue]) -> dict[tuple[str, str], HiddenValue]:
        return {
            (each.kind, _spelled(each.value)): each
            for each in wanted
            if self.placeholder_of(each) is None
        }

    def _fits(self, missing: Mapping[tuple[str, str], HiddenValue]) -> bool:
        size = sum(map(_checked_size, missing.values()))
        return len(self) + len(missing) <= MAX_VALUES and self._bytes + size <= MAX_BYTES

    def add(self, entry: PlaceholderEntry) -> None:
        """Take over an entry that `draft` made, here or elsewhere."""
        placeholder, value = entry
        kind = placeholder.kind
        spelled = _spelled(value)
        self._values[placeholder] = value
        self._placeholders[kind, spelled] = placeholder
        self._latest[kind, _normal(kind, value)] = placeholder
        self._counts[kind] = max(self._counts.get(kind, self.base), placeholder.number)
        self._bytes += len(spelled)
        self.learn(HiddenValue(kind, value))

    def learn(self, hidden: HiddenValue) -> None:
        """Find this value from now on wherever it stands, even before it has an entry."""
        kind, value = hidden
        if kind == LITERAL or not is_findable(value):
            return
        if isinstance(value, int) and value.bit_length() < _MAX_BITS:
            self.known.add(kind, str(value))
        if isinstance(value, str):
            self.known.add(kind, value)
            if value.isascii() and value.isdigit() and len(value) < _MAX_NUMBER:
                self._numbers.setdefault(int(value), kind)
        else:
            self._numbers.setdefault(value, kind)


class _Numbering:
    """Gives numbers, without writing into the book that it goes on from."""

    def __init__(
        self,
        latest: MutableMapping[tuple[str, str], Placeholder],
        counts: MutableMapping[str, int],
        base: int,
    ) -> None:
        self._latest = ChainMap[tuple[str, str], Placeholder]({}, latest)
        self._counts = ChainMap[str, int]({}, counts)
        self._base = base

    def next(self, hidden: HiddenValue) -> Placeholder:
        kind, value = hidden
        normal = kind, _normal(kind, value)
        latest = self._latest.get(normal)
        if latest is None:
            self._counts[kind] = self._counts.get(kind, self._base) + 1
            placeholder = Placeholder(kind, self._counts[kind])
        else:
            placeholder = latest._replace(variant=latest.variant + 1)
        self._latest[normal] = placeholder
        return placeholder


def is_findable(value: Scalar) -> bool:
    """Whether a value is found by itself wherever it stands."""
    if isinstance(value, str):
        return can_be_known(value)
    return abs(value) >= _LEAST_KNOWN_NUMBER


def _spelled(value: Scalar) -> str:
    """Return a text that no other value has: 1, 1.0 and "1" are three."""
    return value if isinstance(value, str) and not value.startswith("\0") else _tagged(value)


def _tagged(value: Scalar) -> str:
    # In hexadecimal, because Python refuses to write long numbers in decimal.
    return f"\0{value:x}" if isinstance(value, int) else f"\0{value!r}"


def _normal(kind: str, value: Scalar) -> str:
    return normal_form(kind, str(value))


def _checked_size(hidden: HiddenValue) -> int:
    value = hidden.value
    if isinstance(value, str):
        if len(value) <= MAX_VALUE_BYTES:
            return len(value)
    elif not isinstance(value, int) or value.bit_length() < _MAX_BITS:
        return len(_tagged(value))
    raise BadInput(
        f"A value of kind {hidden.kind} is too large to be concealed: at most "
        f"{MAX_VALUE_BYTES:,} characters, or {_MAX_BITS:,} bits, fit in a vault. If it is not "
        "personal, exempt its field with a rule."
    )
