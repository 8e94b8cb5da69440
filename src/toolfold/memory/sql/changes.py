"""Apply a consolidation to notes, and reverse it; inside of a transaction.

Every change is written down with what it takes to reverse it:

    hidden    the note was superseded or archived. before: its influence; after: when it was deleted
    tagged    it got the tags of those it supersedes. before: its influence; after: its version then
    linked    `link` and `hash` are the link that was made, `other` is the note it leads to
    faded     before and after: its influence
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from toolfold.memory.consolidation.models import ConsolidationCounts
from toolfold.memory.consolidation.store import ConsolidationPlan, Merge, SeenNote
from toolfold.memory.models import LinkKind
from toolfold.memory.sql.connection import SqlConnection
from toolfold.memory.sql.writer import NoteWriter
from toolfold.memory.store import NoteChange

_INSERT: Final = """
    INSERT INTO consolidation_changes
        (consolidation, number, kind, before, after, other, link, hash)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_NUMBERS_AT_ONCE: Final = 500


class _Changed(NamedTuple):
    """A row of the table of changes."""

    number: int
    kind: str
    before: float | None = None
    after: float | None = None
    other: int | None = None
    link: str | None = None
    hash: str | None = None


class Applier:
    """Applies one plan to the notes of a namespace."""

    def __init__(
        self, connection: SqlConnection, namespace: str, consolidation: int, *, now: float
    ) -> None:
        self._connection = connection
        self._consolidation = consolidation
        self._now = now
        self._writer = NoteWriter(connection, namespace, now=now)
        self._did: Counter[str] = Counter()

    def apply(self, plan: ConsolidationPlan) -> tuple[ConsolidationCounts, int]:
        """Do what is planned; return how much was done, and how many notes were left alone."""
        same = _unchanged(self._connection, plan.seen)
        for merge in plan.merges:
            self._merge(merge, plan.seen, same)
        for number in plan.archive:
            if number in same:
                self._hide(number, is_archived=True)
        for number, other in plan.links:
            if number in same and other in same:
                self._associate(number, other, plan.seen)
        self._fade({key: value for key, value in plan.influence.items() if key in same})
        return _counts(self._did), len(plan.seen) - len(same)

    def _merge(self, merge: Merge, seen: Mapping[int, SeenNote], same: set[int]) -> None:
        if merge.survivor not in same:
            return
        for number in merge.superseded:
            if number in same:
                self._link(merge.survivor, "supersedes", number, seen[number].hash)
                self._hide(number, is_archived=False)
        if same.issuperset(merge.superseded):
            self._tag(merge)

    def _tag(self, merge: Merge) -> None:
        number = merge.survivor
        before = _influence(self._connection, number)
        version = _version(self._connection, number)
        self._writer.update(number, NoteChange(tags=merge.tags))
        _set_influence(self._connection, number, before)
        after = _version(self._connection, number)
        if after != version:
            self._note(_Changed(number, "tagged", before, after))

    def _hide(self, number: int, *, is_archived: bool) -> None:
        before = _influence(self._connection, number)
        if is_archived:
            self._writer.archive(number)
        else:
            self._writer.delete(number)
        self._did["archived" if is_archived else "superseded"] += 1
        self._note(_Changed(number, "hidden", before, self._now))

    def _associate(self, number: int, other: int, seen: Mapping[int, SeenNote]) -> None:
        self._link(number, "associated", other, seen[other].hash)
        self._link(other, "associated", number, seen[number].hash)
        self._did["associations"] += 1

    def _link(self, number: int, kind: LinkKind, other: int, name: str) -> None:
        made = self._connection.execute(
            "INSERT INTO links VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (number, kind, name)
        )
        if made.rowcount:
            self._note(_Changed(number, "linked", other=other, link=kind, hash=name))

    def _fade(self, influence: Mapping[int, float]) -> None:
        changed = self._connection.next_change()
        for number, after in influence.items():
            before = _influence(self._connection, number)
            self._note(_Changed(number, "faded", before, after))
            _set_influence(self._connection, number, after, changed)
        self._did["faded"] += len(influence)

    def _note(self, changed: _Changed) -> None:
        self._connection.execute(_INSERT, (self._consolidation, *changed))


class Reverser:
    """Reverses what one consolidation did to the notes of a namespace."""

    def __init__(
        self, connection: SqlConnection, namespace: str, consolidation: int, *, now: float
    ) -> None:
        self._connection = connection
        self._consolidation = consolidation
        self._writer = NoteWriter(connection, namespace, now=now)
        self._changed = connection.next_change()
        self._did: Counter[str] = Counter()

    def reverse(self) -> tuple[ConsolidationCounts, tuple[int, ...]]:
        """Reverse all, the last change first; return how much, and the notes left as they are."""
        rows = self._connection.execute(
            "SELECT number, kind, before, after, other, link, hash FROM consolidation_changes "
            "WHERE consolidation = ? ORDER BY id DESC",
            (self._consolidation,),
        ).fetchall()
        changes = [_Changed(*row) for row in rows]
        left = {each.number for each in changes if not self._reverse(each)}
        return _counts(self._did), tuple(sorted(left))

    def _reverse(self, change: _Changed) -> bool:
        """Reverse one change; tell whether the note was as that change had left it."""
        match change.kind:
            case "hidden":
                return self._show(change)
            case "tagged":
                return self._untag(change)
            case "faded":
                return self._unfade(change)
            case _:
                return self._unlink(change)

    def _show(self, change: _Changed) -> bool:
        row = self._connection.execute(
            "SELECT deleted, archived FROM notes WHERE number = ?", (change.number,)
        ).fetchone()
        if row is None or row[0] != change.after:
            return False
        self._writer.restore(change.number)
        _set_influence(self._connection, change.number, change.before, self._changed)
        self._did["superseded" if row[1] is None else "archived"] += 1
        return True

    def _untag(self, change: _Changed) -> bool:
        if _version(self._connection, change.number) != change.after:
            return False
        self._writer.take_back(change.number)
        _set_influence(self._connection, change.number, change.before, self._changed)
        return True

    def _unfade(self, change: _Changed) -> bool:
        if _influence(self._connection, change.number) != change.after:
            return False
        _set_influence(self._connection, change.number, change.before, self._changed)
        self._did["faded"] += 1
        return True

    def _unlink(self, change: _Changed) -> bool:
        gone = self._connection.execute(
            "DELETE FROM links WHERE number = ? AND kind = ? AND hash = ?",
            (change.number, change.link, change.hash),
        ).rowcount
        # Each association is two links.
        self._did["half associations"] += gone * (change.link == "associated")
        self._did["associations"] = (self._did["half associations"] + 1) // 2
        return True


def _unchanged(connection: SqlConnection, seen: Mapping[int, SeenNote]) -> set[int]:
    """Return the numbers of the notes that are what they were, and not deleted."""
    return {
        number
        for some in _portions(list(seen))
        for number, name, version in connection.execute(
            "SELECT number, hash, version FROM notes WHERE deleted IS NULL "
            f"AND number IN ({', '.join('?' * len(some))})",
            some,
        )
        if seen[number] == (name, version)
    }


def _portions(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        yield numbers[start : start + _NUMBERS_AT_ONCE]


def _counts(did: Mapping[str, int]) -> ConsolidationCounts:
    known = {name: did[name] for name in ConsolidationCounts._fields if name in did}
    return ConsolidationCounts(**known)


def _version(connection: SqlConnection, number: int) -> int | None:
    row = connection.execute("SELECT version FROM notes WHERE number = ?", (number,)).fetchone()
    return None if row is None else row[0]


def _influence(connection: SqlConnection, number: int) -> float | None:
    row = connection.execute("SELECT quality FROM points WHERE number = ?", (number,)).fetchone()
    return None if row is None else row[0]


def _set_influence(
    connection: SqlConnection, number: int, influence: float | None, changed: int | None = None
) -> None:
    connection.execute(
        "UPDATE points SET quality = ?, changed = coalesce(?, changed) WHERE number = ?",
        (influence, changed, number),
    )
