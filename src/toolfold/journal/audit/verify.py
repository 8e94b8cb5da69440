"""Verify the audit log: recompute every entry, and compare it with the row that it speaks of."""

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, Final, NamedTuple, cast

from toolfold.errors import StoreError
from toolfold.journal.audit.chain import (
    AUDITED,
    HASH_BYTES,
    NOWHERE,
    Audited,
    ChainLink,
    EntryKind,
    Head,
    Signer,
    digest,
    last_entry,
)
from toolfold.journal.runs import CALLS_BITS
from toolfold.storage.sqlite_file import translated
from toolfold.storage.tables import SqlTransaction

_MAX_INT: Final = (1 << 63) - 1
_ENTRIES: Final = "SELECT seq, at, kind, ref, link FROM audit WHERE seq >= ? ORDER BY seq"
_BEFORE: Final = "SELECT link FROM audit WHERE seq = ?"
_NUMBERED: Final = ", ".join(f"'{kind}'" for kind, each in AUDITED.items() if each.is_numbered)
_OF_RUN: Final = f"""
    SELECT seq, at, kind, ref, link FROM audit
    WHERE seq >= ? AND CASE WHEN kind IN ({_NUMBERED}) THEN ref ELSE ref >> {CALLS_BITS} END = ?
    ORDER BY seq
"""  # noqa: S608
_SKEW_S: Final = 60.0


class Anchor(NamedTuple):
    """From where the log is there, and what it must hold."""

    seq: int
    """Of the last entry that is not there any more; 0 if all are."""
    chain: bytes
    since: int
    """The number of the first run that has entries."""
    below: int
    """Pruning may have deleted rows of runs with lower numbers."""


class AuditEntry(NamedTuple):
    """One entry of the log."""

    seq: int
    at: float
    kind: EntryKind
    ref: int
    link: ChainLink

    @property
    def is_sound(self) -> bool:
        """Whether it could have been written by us: anything else may stand in its place."""
        is_marked = isinstance(self.at, float) and isinstance(self.ref, int)
        return is_marked and self.kind in AUDITED and len(self.link.chain) == HASH_BYTES

    @property
    def audited(self) -> Audited:
        """The table that its row is in."""
        return AUDITED[self.kind]

    @property
    def number(self) -> int:
        """The number of the run that it belongs to."""
        return self.audited.run_number(self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFault:
    """The first thing that does not hold."""

    what: str
    seq: int | None = None
    """Of the entry; None if it is not about an entry."""
    run: str = ""
    """The id of the run, or its number if that is all that is known of it."""
    is_end: bool = False
    """Whether it is only about how far the log went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What there is, and what is wrong with it. With a fault, the counts go as far as that."""

    entries: int
    runs: int
    pruned: int
    """Entries whose rows were deleted by retention."""
    trimmed: int
    """Entries that were deleted with them."""
    older: int
    """Runs from before there was an audit log, which have no entries."""
    fault: AuditFault | None
    gaps: tuple[str, ...] = ()
    """What could not be written, each with its time."""


class _Broken(Exception):
    def __init__(
        self, what: str, *, seq: int | None = None, run: int | None = None, is_end: bool = False
    ) -> None:
        self.what, self.seq, self.run, self.is_end = what, seq, run, is_end


def verify(connection: SqlTransaction, signer: Signer, head: Head | None) -> Verified:
    """Verify the log at one moment, which must have begun after the head was read."""
    connection.take_any_text()
    walk = _Walk(connection, signer, head)
    fault = None
    try:
        with translated("the file"):
            walk.check()
    except _Broken as broken:
        run = _run_name(connection, broken.run)
        fault = AuditFault(what=broken.what, seq=broken.seq, run=run, is_end=broken.is_end)
    except (StoreError, UnicodeError) as error:  # names of columns may be no UTF-8, too
        after = f" after entry {walk.seq}" if walk.seq else ""
        fault = AuditFault(what=f"the file is damaged{after}: {error.__cause__ or error}")
    return Verified(
        entries=sum(walk.found.values()) + walk.pruned,
        runs=walk.found["begin"],
        pruned=walk.pruned,
        trimmed=walk.anchor.seq,
        older=walk.older,
        fault=fault,
        gaps=_gaps(connection) if fault is None else (),
    )


def verify_run(connection: SqlTransaction, signer: Signer, run_id: str) -> Verified:
    """Verify the entries of one run at one moment, and that each of its rows has one."""
    connection.take_any_text()
    walk = _Walk(connection, signer, None)
    fault = None
    try:
        walk.check_run(run_id)
    except _Broken as broken:
        fault = AuditFault(what=broken.what, seq=broken.seq, run=run_id)
    return Verified(
        entries=sum(walk.found.values()),
        runs=walk.found["begin"],
        pruned=walk.pruned,
        trimmed=0,
        older=walk.older,
        fault=fault,
    )


def _gaps(connection: SqlTransaction) -> tuple[str, ...]:
    """Return what the log says of itself that is missing: its rows have been verified."""
    rows = connection.execute(
        "SELECT began_at, ended_at, code FROM beginnings LEFT JOIN ends USING (number)"
        " WHERE kind = 'gap' ORDER BY number"
    )
    return tuple(
        f"{_time(since)} to {_time(until or since)}: {str(code).removeprefix('# ')}"
        for since, until, code in rows
    )


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def read_anchor(connection: SqlTransaction, signer: Signer | None = None) -> Anchor | None:
    """Return the anchor; None if there is none, or if it is not signed so by `signer`."""
    rows = connection.execute("SELECT seq, chain, since, below, seal FROM anchor").fetchall()
    if len(rows) != 1:
        return None
    *values, seal = rows[0]
    if signer is not None:
        try:
            is_ours = compare_digest(signer.anchor(*values), seal)
        except (struct.error, TypeError):
            return None
        if not is_ours:
            return None
    return Anchor(*values)


def entries(connection: SqlTransaction, *, first: int = -_MAX_INT) -> Iterator[AuditEntry]:
    """Return the entries from number `first` on, as they stand there."""
    return map(_entry, connection.execute(_ENTRIES, (first,)))


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    seq, at, kind, ref, link = row
    chained = ChainLink.of(link) if isinstance(link, bytes) else ChainLink(b"", b"")
    return AuditEntry(seq, at, kind, ref, chained)


def row_reader(connection: SqlTransaction) -> Callable[[AuditEntry], tuple[Any, ...] | None]:
    """Return a function that reads the row of an entry; None if there is none."""
    statements = {
        kind: f"SELECT {', '.join(each.columns)} FROM {each.table} WHERE {each.columns[0]} = ?"  # noqa: S608
        for kind, each in AUDITED.items()
    }

    def read(entry: AuditEntry) -> tuple[Any, ...] | None:
        row = connection.execute(statements[entry.kind], (entry.ref,)).fetchone()
        return cast("tuple[Any, ...] | None", row)

    return read


class _Walk:
    """One way through the log, from the anchor to the head."""

    def __init__(self, connection: SqlTransaction, signer: Signer, head: Head | None) -> None:
        self._connection = connection
        self._signer = signer
        self._head = head
        self._row_of = row_reader(connection)
        self.anchor = Anchor(0, b"", 0, 0)
        self.seq = 0
        self.found: Counter[EntryKind] = Counter()
        self.pruned = 0
        self.older = 0

    def check(self) -> None:
        anchor = read_anchor(self._connection, self._signer)
        if anchor is None:
            raise _Broken("the anchor was changed, or the key is another")
        self.anchor = anchor
        self._check_head_before(anchor)
        self.seq, chain = anchor.seq, anchor.chain
        for entry in entries(self._connection):
            self._check_entry(entry, chain)
            self.seq, chain = entry.seq, entry.link.chain
        self._check_end()
        for kind, audited in AUDITED.items():
            self._check_rows(kind, audited)
        self._count_older()
        self._check_file()

    def check_run(self, run_id: str) -> None:
        anchor = read_anchor(self._connection, self._signer)
        if anchor is None:
            raise _Broken("the anchor was changed, or the key is another")
        self.anchor = anchor
        number, began_at = self._connection.execute(
            "SELECT number, began_at FROM beginnings WHERE id = ?", (run_id,)
        ).fetchone()
        if number < anchor.since:
            self.older = 1
            return
        rows = self._connection.execute(_OF_RUN, (self._first_seq(began_at - _SKEW_S), number))
        for entry in map(_entry, rows.fetchall()):
            before = self._connection.execute(_BEFORE, (entry.seq - 1,)).fetchone()
            if before is None and entry.seq - 1 != anchor.seq:
                raise _Broken(f"entry {entry.seq - 1} is missing", seq=entry.seq - 1)
            self._check_link(entry, ChainLink.of(before[0]).chain if before else anchor.chain)
            self._check_row(entry)
        for kind, audited in AUDITED.items():
            self._check_rows_of(kind, audited, number)

    def _first_seq(self, at: float) -> int:
        """Return the first entry that is not older, by halves: only the numbers have an index."""
        low, high = self._connection.execute(
            "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM audit"
        ).fetchone()
        while low < high:
            middle = (low + high) // 2
            found = self._connection.execute(
                "SELECT at FROM audit WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,)
            ).fetchone()
            low, high = (middle + 1, high) if found[0] < at else (low, middle)
        return int(low)

    def _check_rows_of(self, kind: EntryKind, audited: Audited, number: int) -> None:
        keys = audited.first_key(number), audited.first_key(number + 1)
        key, table = audited.columns[0], audited.table
        found = self._connection.execute(
            f"SELECT count(*) FROM {table} WHERE {key} >= ? AND {key} < ?",  # noqa: S608
            keys,
        ).fetchone()
        if found[0] != self.found[kind]:
            raise _Broken(f"{table} has a row that is not in the log", run=number)

    def _check_entry(self, entry: AuditEntry, before: bytes) -> None:
        expected = self.seq + 1
        if entry.seq != expected:
            raise _Broken(f"entry {expected} is missing", seq=expected)
        self._check_link(entry, before)
        self._check_row(entry)
        self._check_head_at(entry)

    def _check_link(self, entry: AuditEntry, before: bytes) -> None:
        changed = f"entry {entry.seq} was changed, or one before it was taken out"
        if not entry.is_sound:
            raise _Broken(changed, seq=entry.seq)
        chain = self._signer.chain(
            before, entry.link.digest, entry.kind.encode(), entry.ref, entry.at
        )
        if not compare_digest(chain, entry.link.chain):
            raise _Broken(changed, seq=entry.seq, run=entry.number)

    def _check_row(self, entry: AuditEntry) -> None:
        row = self._row_of(entry)
        name = f"{entry.audited.table}, the row of entry {entry.seq} ({entry.kind})"
        if row is None:
            if entry.number >= self.anchor.below:
                raise _Broken(f"{name}, is missing", seq=entry.seq, run=entry.number)
            self.pruned += 1
            return
        try:
            hashed = digest(row)
        except (KeyError, struct.error):
            hashed = b""
        if not compare_digest(hashed, entry.link.digest):
            raise _Broken(f"{name}, was changed", seq=entry.seq, run=entry.number)
        self.found[entry.kind] += 1

    def _check_head_before(self, anchor: Anchor) -> None:
        head = self._head
        if head is None:
            if last_entry(self._connection) == NOWHERE and anchor.seq == 0:
                return  # nothing was written yet
            raise _Broken("the head is missing, which records the end of the log", is_end=True)
        if head.seq == anchor.seq and head.chain != anchor.chain:
            raise _Broken(f"entry {head.seq} was another one", seq=head.seq, is_end=True)

    def _check_head_at(self, entry: AuditEntry) -> None:
        head = self._head
        if head and entry.seq == head.seq and head.chain != entry.link.chain:
            what = f"entry {entry.seq} was another one: the log was cut off and written on"
            raise _Broken(what, seq=entry.seq, run=entry.number, is_end=True)

    def _check_end(self) -> None:
        if self._head and self._head.seq > self.seq:
            first = self.seq + 1
            what = f"entries {first} to {self._head.seq}, the last ones, are missing"
            raise _Broken(what, seq=first, is_end=True)

    def _check_rows(self, kind: EntryKind, audited: Audited) -> None:
        """Find rows that nobody logged. Those of older runs have no entries."""
        key, table = audited.columns[0], audited.table
        older = audited.first_key(1), audited.first_key(self.anchor.since)
        logged = f"{table} WHERE NOT ({key} >= ? AND {key} < ?)"
        count = self._connection.execute(f"SELECT count(*) FROM {logged}", older).fetchone()[0]  # noqa: S608
        if count == self.found[kind]:
            return
        row = self._connection.execute(
            f"SELECT {key} FROM {logged} AND {key} NOT IN"  # noqa: S608
            " (SELECT ref FROM audit WHERE kind = ?) LIMIT 1",
            (*older, kind),
        ).fetchone()
        number = audited.run_number(row[0]) if row else None
        raise _Broken(f"{table} has a row that is not in the log", run=number)

    def _count_older(self) -> None:
        self.older = self._connection.execute(
            "SELECT count(*) FROM beginnings WHERE number >= 1 AND number < ?",
            (self.anchor.since,),
        ).fetchone()[0]

    def _check_file(self) -> None:
        if damage := self._connection.damage():
            raise _Broken(f"the file is damaged: {damage}")


def _run_name(connection: SqlTransaction, number: int | None) -> str:
    if number is None:
        return ""
    try:
        with translated("the file"):
            found = connection.execute("SELECT id FROM beginnings WHERE number = ?", (number,))
            row = found.fetchone()
    except (StoreError, UnicodeError):
        row = None
    return str(row[0]) if row else f"number {number}"
