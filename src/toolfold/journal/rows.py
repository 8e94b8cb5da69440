"""Write rows to the journal, and later what the ledger needs. Trouble is never raised."""

import json
import logging
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, Protocol

from toolfold.catalog.tool import DefinitionText
from toolfold.errors import StoreBusy, StoreDamaged, StoreError
from toolfold.journal.audit.chain import (
    EntryKind,
    Head,
    Signer,
    advance,
    is_in,
    last_entry,
    signer_of,
)
from toolfold.journal.audit.writer import AuditWriter
from toolfold.journal.runsdb import settle
from toolfold.storage.files import PATIENCE_S
from toolfold.storage.tables import LastingTables, SqlTransaction

_log = logging.getLogger(__name__)

_MINUTE_S: Final = 60.0
_GAP_S: Final = 5.0  # a disk that is nearly full takes one row and not the next
_SHORT_PATIENCE_S: Final = 0.1  # every run of the process waits meanwhile
_LAST_PATIENCE_S: Final = 1.0
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
_ROW_BYTES: Final = 200
_UNWRITABLE: Final = (StoreError, OSError, ValueError, LookupError, ArithmeticError, struct.error)
"""What is raised of values that no database takes, and by databases that take none."""

RowKind = EntryKind | Literal["plain", "settled"]
"""What a row is: one with an entry in the audit log, one without, or that others are needed no
more."""


@dataclass(slots=True)
class RunLocation:
    """Where a run is written down: in which file, and under which number. Nowhere until it is."""

    file: object = None
    number: int = 0


class Row(NamedTuple):
    """One row of a run. Its key depends on the number that the first row of the run gets."""

    place: RunLocation
    kind: RowKind
    values: tuple[Any, ...]
    key: Callable[[int], int] | None = None
    """From the number of the run; None for the first row, which brings that about."""
    statement: str = ""
    """Of a plain one."""

    @property
    def size(self) -> int:
        """About how much memory it holds."""
        return _ROW_BYTES + sum([len(value) for value in self.values if type(value) is str])


class Gap(NamedTuple):
    """That rows were lost: since when, how many, and why the first one was."""

    since: float
    rows: int
    reason: str


class RowWriter:
    """Writes to tables that stay open, and to others in their place when they are gone.

    Rows wait in memory while another process holds the tables. Those that are lost are counted, and
    the count is logged at most once a minute.
    """

    def __init__(
        self,
        tables: LastingTables,
        path: Path,
        *,
        clock: Callable[[], float],
        gap_rows: Callable[["Gap", float], tuple[tuple[Any, ...], tuple[Any, ...]]],
    ) -> None:
        """`path` is that of the journal, beside which its key and its head are."""
        self._gap_rows = gap_rows
        self._tables = tables
        self._signer: Signer | None = None
        self._signed: object = None
        self._last: Head | None = None
        """The last entry, as far as this process knows."""
        self._head: Head | None = None
        self._path = path
        self._clock = clock
        self._waiting: deque[Row] = deque()
        self._waiting_bytes = 0
        self._is_patient = True
        self._missing = 0
        self._complained_at = float("-inf")
        self._is_doubted = False
        self._is_behind = False
        self._gap: Gap | None = None
        self._gap_at = float("-inf")

    def open(self) -> None:
        """Open the tables; what is damaged is set aside."""
        self._tables.be_patient(PATIENCE_S)
        try:
            self._tables.read(lambda _: None)
        except StoreError as error:
            self._complain(_reason(error))
        else:
            self._seal()
        self._be_patient()

    def close(self) -> None:
        """Write what waits, close the tables, and say what was not said yet."""
        if self._waiting and self._tables.file is not None:
            self._tables.be_patient(_LAST_PATIENCE_S)
            self.flush()
        if self._gap is not None:
            self._gap_at = float("-inf")
            self._close_gap(self._gap)
        if self._tables.file is not None:
            self._seal()
        self._tables.close()
        self._missing += len(self._waiting)
        self._waiting.clear()
        if self._missing:
            _log.warning("The journal %s misses %d more rows.", self._path, self._missing)
            self._missing = 0

    def hold(self, row: Row) -> None:
        """Have a row written together with the next one."""
        size = row.size
        if self._waiting_bytes + size > _MAX_WAITING_BYTES:
            self.flush()
        if self._waiting_bytes + size > _MAX_WAITING_BYTES:
            self._miss("too many rows wait for it")
            return
        self._waiting.append(row)
        self._waiting_bytes += size

    def flush(self) -> bool:
        """Write the rows that wait, all in one go; tell whether all are written now."""
        lost = self._lost
        if self._waiting:
            self._write_waiting()
        is_whole = self._lost == lost and not self._waiting
        if is_whole and self._gap is not None:
            self._close_gap(self._gap)
        return is_whole

    def _write_waiting(self) -> None:
        try:
            self._write(tuple(self._waiting))
        except StoreBusy as error:
            self._have_others_go_first(error)
        except _UNWRITABLE as error:
            if len(self._waiting) > 1 or isinstance(error, StoreDamaged):
                self._write_each()
            else:
                self._give_up(error)

    def _write_each(self) -> None:
        """Write what can be written by itself: into another file, where one was damaged."""
        while self._waiting:
            try:
                self._write((self._waiting[0],))
            except StoreBusy as error:
                self._have_others_go_first(error)
                return
            except _UNWRITABLE as error:
                self._give_up(error)

    def _write(self, rows: Sequence[Row]) -> None:
        """Write rows, or none of them."""
        known, self._last = self._last, None
        try:
            foreign, last = self._tables.append(lambda each: self._append(each, rows, known))
        except _UNWRITABLE as error:
            if known is None or isinstance(error, StoreBusy):
                raise
            # Another process has written since, perhaps.
            foreign, last = self._tables.append(lambda each: self._append(each, rows, None))
        self._last = None if self._tables.is_shared else last
        self._taken(rows)
        for _ in range(foreign):
            self._miss("the run began when there was no such file")
        if not self._is_patient:
            self._be_patient()
        for row in rows:
            if row.kind == "end":
                self._seal()  # never before what it is about is there for good
                break

    def _append(
        self, transaction: SqlTransaction, rows: Iterable[Row], last: Head | None
    ) -> tuple[int, Head | None]:
        """Add rows; return how many are of runs that another file has, and the last entry."""
        file, foreign = self._tables.file, 0
        last = last if file is self._signed else None
        audit = AuditWriter(transaction, self._signer_for(file), last)
        for row in rows:
            place = row.place
            if row.key is None:
                place.file, place.number = None, audit.begin(row.values)
                place.file = file
            elif place.file is file:
                _add(transaction, audit, row, row.key(place.number))
            else:
                foreign += 1
        return foreign, audit.last

    def _signer_for(self, file: object) -> Signer:
        if self._signer is None or self._signed is not file:
            self._signer, self._signed = signer_of(self._path), file
            self._last = self._head = None
        return self._signer

    def _taken(self, rows: Sequence[Row]) -> None:
        if len(rows) == len(self._waiting):
            self._waiting.clear()
            self._waiting_bytes = 0
            return
        for row in rows:
            self._waiting.popleft()
            self._waiting_bytes -= row.size

    def _give_up(self, error: Exception) -> None:
        self._taken((self._waiting[0],))
        self._miss(_reason(error))

    def _have_others_go_first(self, error: StoreBusy) -> None:
        # Waiting stops every run of the process: once is enough, until a row succeeds.
        self._is_patient = False
        self._tables.be_patient(0)
        self._complain(f"{_reason(error)}, and {len(self._waiting)} wait for it")

    def _be_patient(self) -> None:
        self._is_patient = True
        self._tables.be_patient(_SHORT_PATIENCE_S)

    @property
    def _lost(self) -> int:
        return self._gap.rows if self._gap else 0

    @property
    def is_held_up(self) -> bool:
        """Whether rows wait for another process that has the tables."""
        return bool(self._waiting)

    @property
    def trouble(self) -> str:
        """Why the last row was lost."""
        return self._gap.reason if self._gap else "another process has locked it"

    def _close_gap(self, gap: Gap) -> None:
        """Write down what is missing, as a run of its own, which is signed like any other."""
        now = self._clock()
        if self._tables.file is None or now - self._gap_at < _GAP_S:
            return

        def work(transaction: SqlTransaction) -> None:
            audit = AuditWriter(transaction, self._signer_for(self._tables.file))
            begin, end = self._gap_rows(gap, now)
            self._last = None
            audit.add("end", (audit.begin(begin), *end))

        with suppress(*_UNWRITABLE):
            self._tables.write(work)
            self._gap, self._gap_at = None, now
            self._seal()

    def catch_up(self) -> None:
        """Write the rows that wait, and move the head on if another process was about to."""
        self.flush()
        if self._gap is not None and not self._waiting:
            self._close_gap(self._gap)
        if self._is_behind:
            self._seal()

    def _seal(self) -> None:
        """Move the head of the audit log on to where the log ends."""

        try:
            last = self._last or self._tables.read(last_entry)
            signer = self._signer_for(self._tables.file)
            self._head = advance(self._path, signer, last, self._is_logged)
            self._is_behind = False
        except (TimeoutError, StoreBusy):
            self._is_behind = True
        except (StoreError, OSError) as error:
            self._doubt(_reason(error))

    def _is_logged(self, head: Head) -> bool:
        """Whether the log holds the entry that the head is at, as it did when that was moved."""
        return head == self._head or self._tables.read(lambda each: is_in(each, head))

    def _miss(self, reason: str) -> None:
        self._missing += 1
        gap = self._gap or Gap(self._clock(), 0, reason)
        self._gap = gap._replace(rows=gap.rows + 1)
        self._complain(reason)

    def _complain(self, reason: str) -> None:
        now = self._clock()
        if now - self._complained_at < _MINUTE_S:
            return
        message = (
            "The journal %s cannot be written (rows lost so far: %d): %s. Runs continue without it."
        )
        _log.warning(message, self._path, self._missing, reason)
        self._complained_at, self._missing = now, 0

    def _doubt(self, reason: str) -> None:
        if not self._is_doubted:
            message = "The audit log of %s: %s. See `toolfold runs verify`."
            _log.warning(message, self._path, reason)
        self._is_doubted = True


def _add(transaction: SqlTransaction, audit: AuditWriter, row: Row, key: int) -> None:
    match row.kind:
        case "plain":
            transaction.execute(row.statement, (key, *row.values))
        case "settled":
            settle(transaction, key)
        case "decision" | "reveal":
            audit.add_next(row.kind, key, row.values)
        case kind:
            audit.add(kind, (key, *row.values))


def _reason(error: Exception) -> str:
    """Return what a database has said, without where that is."""
    cause = error.__cause__
    is_theirs = cause is not None and not isinstance(cause, StoreError)
    return str(cause if is_theirs and isinstance(error, StoreError) else error)


def own_number(number: int) -> int:
    """Return the key of a row that is about the whole run."""
    return number


_MAX_WAITING_CHARS: Final = 16 * 1024 * 1024


KEEP_TOKENS: Final = "INSERT INTO tokens (id, part, tokens) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_LISTING: Final = "INSERT INTO listings (id, text) VALUES (?, ?) ON CONFLICT DO NOTHING"
_OFFER: Final = (
    "INSERT INTO offers (number, listings, shown) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
)


class OfferedTools(Protocol):
    """What tools there were, as far as that is known by the time it is asked for."""

    @property
    def listings(self) -> Iterable[DefinitionText]:
        """Their definitions, a listing for each server."""


@dataclass(frozen=True, slots=True)
class _Long:
    """A text of which the journal keeps no more than the head."""

    place: RunLocation
    key: Callable[[int], int]
    part: str
    text: str


@dataclass(frozen=True, slots=True)
class _Offered:
    place: RunLocation
    offer: OfferedTools
    shown: DefinitionText | None


class LedgerWriter:
    """Counts texts that the journal does not keep whole, and writes which tools a run had.

    Losing that loses tokens that were saved, never a run: trouble is logged, and forgotten.
    """

    def __init__(self, tables: LastingTables) -> None:
        self._tables = tables
        self._waiting: deque[_Long | _Offered] = deque()
        self._settling = Lock()

    def count(self, place: RunLocation, key: Callable[[int], int], part: str, text: str) -> None:
        """Have a long text counted, unless too many wait for that; `key` is as in rows."""
        longs = [len(each.text) for each in tuple(self._waiting) if isinstance(each, _Long)]
        if sum(longs) + len(text) <= _MAX_WAITING_CHARS:
            self._waiting.append(_Long(place, key, part, text))

    def offer(self, place: RunLocation, offer: OfferedTools, shown: DefinitionText | None) -> None:
        """Have it written which tools a run had, and what the model saw of us."""
        self._waiting.append(_Offered(place, offer, shown))

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def settle(self) -> None:
        """Write all that waits. May be called from any thread, while others add to it."""
        with self._settling:
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not waiting:
                return
            try:
                _write(self._tables, waiting)
            except StoreError as error:
                _log.warning("The ledger misses something: %s", error)
            except Exception:  # noqa: BLE001  # the journal goes on whatever is in a text
                _log.exception("The ledger misses something.")


def _write(tables: LastingTables, waiting: Iterable[_Long | _Offered]) -> None:
    # Keys mean nothing in another file, which may have taken the place of the first.
    here = [each for each in waiting if each.place.file is not None]
    counts = {id(each): _counted(each) for each in here if isinstance(each, _Long)}

    def work(transaction: SqlTransaction) -> None:
        ours = [each for each in here if each.place.file is tables.file]
        offers = [each for each in ours if isinstance(each, _Offered)]
        rows = [counts[id(each)] for each in ours if isinstance(each, _Long)]
        _keep_listings(transaction, offers)
        transaction.executemany(KEEP_TOKENS, rows)
        transaction.executemany(_OFFER, list(map(_row, offers)))

    tables.write(work)


def _keep_listings(transaction: SqlTransaction, offers: Iterable[_Offered]) -> None:
    known = {row[0] for row in transaction.execute("SELECT id FROM listings")}
    listings = {
        listing.id: listing.text
        for each in offers
        for listing in (*each.offer.listings, *filter(None, [each.shown]))
        if listing.id not in known
    }
    transaction.executemany(_LISTING, list(listings.items()))


def _counted(long: _Long) -> tuple[int, str, int]:
    from toolfold.tokens import count_tokens  # heavy, and few texts are long

    return long.key(long.place.number), long.part, count_tokens(long.text)


def _row(offered: _Offered) -> tuple[int, str, str]:
    ids = json.dumps([listing.id for listing in offered.offer.listings])
    return offered.place.number, ids, offered.shown.id if offered.shown else ""


class RunWriter:
    """Writes the rows of one run, and what the ledger needs besides."""

    def __init__(self, place: RunLocation, rows: RowWriter, ledger_writer: LedgerWriter) -> None:
        self._place = place
        self._rows = rows
        self._ledger_writer = ledger_writer

    def hold(self, kind: EntryKind, values: tuple[Any, ...], key: Callable[[int], int]) -> None:
        """Have a row written together with the next one."""
        self._rows.hold(Row(self._place, kind, values, key))

    def hold_plain(
        self, statement: str, values: tuple[Any, ...], key: Callable[[int], int]
    ) -> None:
        """Have a row that has no entry in the audit log written together with the next one."""
        self._rows.hold(Row(self._place, "plain", values, key, statement))

    def settle(self) -> None:
        """Have it written that nobody needs to go on with the run."""
        self._rows.hold(Row(self._place, "settled", (), own_number))

    def flush(self) -> bool:
        """Write the rows that are held; tell whether nothing is lost and nothing waits."""
        return self._rows.flush()

    def count(self, key: Callable[[int], int], part: str, text: str) -> None:
        self._ledger_writer.count(self._place, key, part, text)

    def offer(self, offer: OfferedTools, shown: DefinitionText | None) -> None:
        self._ledger_writer.offer(self._place, offer, shown)
