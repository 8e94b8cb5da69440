"""Write rows of runs, each with its entry in the audit log, in the same transaction."""

from typing import Any, Final

from toolfold.journal.audit.chain import (
    AUDITED,
    RUN_KEYS,
    EntryKind,
    Head,
    Signer,
    digest,
    last_entry,
)
from toolfold.storage.tables import SqlTransaction

_ENTRY: Final = "INSERT INTO audit (seq, at, kind, ref, link) VALUES (?, ?, ?, ?, ?)"
_ROWS: Final = {
    kind: f"INSERT INTO {each.table} ({', '.join(each.columns)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * len(each.columns))})"
    for kind, each in AUDITED.items()
}
_LAST_KEYS: Final = {
    kind: f"SELECT max({each.columns[0]}) FROM {each.table} WHERE {each.columns[0]} BETWEEN ? AND ?"  # noqa: S608
    for kind, each in AUDITED.items()
}
_AT: Final = {kind: each.columns.index(each.at) for kind, each in AUDITED.items()}
_NAMES: Final = {kind: kind.encode() for kind in AUDITED}


class AuditWriter:
    """Writes in one transaction, while nobody else writes to the journal.

    `last` is the last entry, where that is known: if it is another, the database refuses the next.
    """

    def __init__(
        self, transaction: SqlTransaction, signer: Signer, last: Head | None = None
    ) -> None:
        self._transaction = transaction
        self._signer = signer
        self.last = last

    def begin(self, values: tuple[Any, ...]) -> int:
        """Write the first row of a run, and return the number that the run gets."""
        number = self._transaction.next_number("beginnings", "number")
        self.add("begin", (number, *values))
        return number

    def add_next(self, kind: EntryKind, number: int, values: tuple[Any, ...]) -> None:
        """Write a row under the next key of its run."""
        first = AUDITED[kind].first_key(number)
        keys = first, first + RUN_KEYS - 1
        last = self._transaction.execute(_LAST_KEYS[kind], keys).fetchone()[0]
        self.add(kind, ((first if last is None else last) + 1, *values))

    def add(self, kind: EntryKind, row: tuple[Any, ...]) -> None:
        """Write a row, and before it its entry: where rows have a guard, it looks for that."""
        last = self.last or last_entry(self._transaction)
        hashed, key, at = digest(row), row[0], row[_AT[kind]]
        chain = self._signer.chain(last.chain, hashed, _NAMES[kind], key, at)
        self.last = Head(last.seq + 1, chain)
        self._transaction.execute(_ENTRY, (last.seq + 1, at, kind, key, hashed + chain))
        self._transaction.execute(_ROWS[kind], row)
