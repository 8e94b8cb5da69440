"""The entries of a vault: which placeholder stands for which value. Pure."""

from collections import ChainMap, Counter
from collections.abc import Iterable, MutableMapping
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import BadInput, StoreError
from toolfold.privacy.known_values import KnownValues, can_be_known
from toolfold.privacy.placeholders import LITERAL, Placeholder, normal_form

Scalar: TypeAlias = str | int | float

MAX_VALUES: Final = 100_000
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
    def state(self) -> tuple[int, int, int]:
        """What changes whenever there is more to be found, or another kind."""
        return len(self.known), len(self._numbers), len(self._counts)

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
        missing = {
            (each.kind, _spelled(each.value)): each
            for each in wanted
            if self.placeholder_of(each) is None
        }
        size = sum(map(_checked_size, missing.values()))
        if len(self) + len(missing) > MAX_VALUES or self._bytes + size > MAX_BYTES:
            raise StoreError(
                f"The vault is full: {len(self):,} concealed values, {self._bytes:,} bytes. "
                "Begin a new session, or have this one's vault forgotten."
            )
        numbering = _Numbering(self._latest, self._counts, self.base)
        return [PlaceholderEntry(numbering.next(each), each.value) for each in missing.values()]

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
