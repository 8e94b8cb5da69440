"""Write rows to the journal's file, and later what the ledger needs. Trouble is never raised."""

import json
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Protocol

from toolfold.catalog.tool import DefinitionText
from toolfold.errors import StoreError
from toolfold.journal.audit.chain import Signer, advance, signer_of
from toolfold.journal.runsdb import open_for_writing
from toolfold.storage.files import PATIENCE_S
from toolfold.storage.sqlite_file import Opened, identity_of, is_busy, is_damage, set_patience

_log = logging.getLogger(__name__)

END: Final = "INSERT INTO ends VALUES (?, ?, ?, ?, ?, ?)"

_MINUTE_S: Final = 60.0
_GAP_S: Final = 5.0  # a disk that is nearly full takes one row and not the next
_SHORT_PATIENCE_S: Final = 0.1  # every run of the process waits meanwhile
_LAST_PATIENCE_S: Final = 1.0
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
_ROW_BYTES: Final = 200


@dataclass(slots=True)
class RunLocation:
    """Where a run is written down: in which file, and under which number. Nowhere until it is."""

    opened: Opened | None = None
    number: int = 0


class Row(NamedTuple):
    """One row of a run. Its key depends on the number that the first row of the run gets."""

    place: RunLocation
    statement: str
    values: tuple[object, ...]
    key: Callable[[int], int] | None = None
    """From the number of the run; None for the first row, which brings that about."""
    is_end: bool = False
    """Whether it ends the run, so that the head of the audit log moves on."""

    @property
    def size(self) -> int:
        """About how much memory it holds."""
        return _ROW_BYTES + sum([len(value) for value in self.values if type(value) is str])

    def parameters(self) -> tuple[object, ...]:
        """Return what is written."""
        return self.values if self.key is None else (self.key(self.place.number), *self.values)


class Gap(NamedTuple):
    """That rows were lost: since when, how many, and why the first one was."""

    since: float
    rows: int
    reason: str


class RowWriter:
    """Holds the file open, and another in its place when it is damaged or gone.

    Rows wait in memory while somebody else holds the file. Those that are lost are counted, and the
    count is logged at most once a minute.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float],
        gap_rows: Callable[["Gap", float], list[tuple[str, tuple[object, ...]]]],
    ) -> None:
        self._gap_rows = gap_rows
        self.opened: Opened | None = None
        self._signer: Signer | None = None
        self._path = path
        self._clock = clock
        self._waiting: deque[Row] = deque()
        self._waiting_bytes = 0
        self._is_patient = True
        self._missing = 0
        self._complained_at = float("-inf")
        self._is_doubted = False
        self._is_behind = False
        self._has_ended = False
        self._gap: Gap | None = None
        self._gap_at = float("-inf")

    def open(self, *, damaged: Opened | None = None, patience_s: float = PATIENCE_S) -> None:
        """Open the file; one known to be `damaged` is set aside."""
        try:
            self.opened = open_for_writing(
                self._path, damaged=damaged and damaged.identity, patience_s=patience_s
            )
        except StoreError as error:
            self._complain(str(error))
        else:
            self._wait_for_others(self.opened, seconds=_SHORT_PATIENCE_S)
            self._signer, self._is_doubted = None, False
            self._seal(self.opened)

    def close(self) -> None:
        """Write what waits, close the file, and say what was not said yet."""
        if self._waiting and self.opened is not None:
            set_patience(self.opened.connection, _LAST_PATIENCE_S)
            self.flush()
        if self._gap is not None:
            self._gap_at = float("-inf")
            self._close_gap(self._gap)
        if self.opened is not None:
            self._seal(self.opened)
        self._let_go()
        self._missing += len(self._waiting)
        self._waiting.clear()
        if self._missing:
            _log.warning("The journal %s misses %d more rows.", self._path, self._missing)
            self._missing = 0

    def follow(self) -> None:
        """Open what is at the path now, if that is not the file that is open."""
        if self.opened is None or identity_of(self._path) != self.opened.identity:
            self._let_go()
            self.open(patience_s=_SHORT_PATIENCE_S)

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
        """Write the rows that wait, several of them in one go; tell whether all are written now."""
        opened, lost = self.opened, self._lost
        is_one = len(self._waiting) > 1 and opened is not None and _begins(opened.connection)
        while self._waiting and self._is_settled(self._waiting[0]):
            row = self._waiting.popleft()
            self._waiting_bytes = self._waiting_bytes - row.size if self._waiting else 0
        if is_one and opened is not None and opened is self.opened:
            self._commit(opened)
        if self._has_ended and self.opened is not None:
            self._has_ended = False
            self._seal(self.opened)  # never before what it is about is there for good
        is_whole = self._lost == lost and not self._waiting
        if is_whole and self._gap is not None:
            self._close_gap(self._gap)
        return is_whole

    @property
    def _lost(self) -> int:
        return self._gap.rows if self._gap else 0

    @property
    def is_held_up(self) -> bool:
        """Whether rows wait for somebody else who has the file."""
        return bool(self._waiting)

    @property
    def trouble(self) -> str:
        """Why the last row was lost."""
        return self._gap.reason if self._gap else "another process has locked it"

    def _close_gap(self, gap: Gap) -> None:
        """Write down what is missing, as a run of its own, which is signed like any other."""
        opened, now = self.opened, self._clock()
        if opened is None or now - self._gap_at < _GAP_S:
            return
        try:
            opened.connection.execute("BEGIN IMMEDIATE")
            for statement, values in self._gap_rows(gap, now):
                opened.connection.execute(statement, values)
            opened.connection.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                opened.connection.execute("ROLLBACK")
        else:
            self._gap, self._gap_at = None, now
            self._seal(opened)

    def _commit(self, opened: Opened) -> None:
        try:
            opened.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._miss(str(error))
            with suppress(sqlite3.Error):
                opened.connection.execute("ROLLBACK")

    def catch_up(self) -> None:
        """Write the rows that wait, and move the head on if another process was about to."""
        self.flush()
        if self._gap is not None and not self._waiting:
            self._close_gap(self._gap)
        if self._is_behind and self.opened is not None:
            self._seal(self.opened)

    def _is_settled(self, row: Row, *, is_second_try: bool = False) -> bool:
        """Write a row, or find that it is lost; False if it has to wait.

        The keys of a file mean nothing in another, so only the first row of a run goes into any.
        """
        opened = self.opened
        if opened is None or (row.key is not None and row.place.opened is not opened):
            self._miss("the run began when there was no such file")
            return True
        try:
            number = opened.connection.execute(row.statement, row.parameters()).lastrowid
        except sqlite3.Error as error:
            return self._is_lost(row, opened, error, is_second_try=is_second_try)
        if row.key is None:
            row.place.opened, row.place.number = opened, number or 0
        if not self._is_patient:
            self._wait_for_others(opened, seconds=_SHORT_PATIENCE_S)
        self._has_ended = self._has_ended or row.is_end
        return True

    def _seal(self, opened: Opened) -> None:
        """Move the head of the audit log on to where the log ends."""
        if identity_of(self._path) != opened.identity:  # then the head is of another file
            return
        try:
            self._signer = self._signer or signer_of(self._path)
            advance(self._path, opened.connection, self._signer)
            self._is_behind = False
        except TimeoutError:
            self._is_behind = True
        except (StoreError, OSError, sqlite3.Error) as error:
            self._doubt(str(error))

    def _is_lost(
        self, row: Row, opened: Opened, error: sqlite3.Error, *, is_second_try: bool
    ) -> bool:
        if is_busy(error):
            # Waiting stops every run of the process: once is enough, until a row succeeds.
            self._wait_for_others(opened, seconds=0)
            self._complain(f"{error}, and {len(self._waiting)} wait for it")
            return False
        if is_damage(error):
            self._let_go()
            self.open(damaged=opened, patience_s=_SHORT_PATIENCE_S)
            if row.key is None and not is_second_try:
                return self._is_settled(row, is_second_try=True)
        self._miss(str(error))
        return True

    def _wait_for_others(self, opened: Opened, *, seconds: float) -> None:
        self._is_patient = seconds > 0
        set_patience(opened.connection, seconds)

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

    def _let_go(self) -> None:
        if self.opened is not None:
            self.opened.connection.close()
            self.opened = None


def _begins(connection: sqlite3.Connection) -> bool:
    """Begin a transaction, unless others hold the file: then each row is tried by itself."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error:
        return False
    return True


def own_number(number: int) -> int:
    """Return the key of a row that is about the whole run."""
    return number


_MAX_WAITING_CHARS: Final = 16 * 1024 * 1024


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

    def __init__(self, path: Path) -> None:
        self._path = path
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
                _write(self._path, waiting)
            except (StoreError, sqlite3.Error) as error:
                _log.warning("The ledger in %s misses something: %s", self._path, error)
            except Exception:  # noqa: BLE001  # the journal goes on whatever is in a text
                _log.exception("The ledger in %s misses something.", self._path)


def _write(path: Path, waiting: Iterable[_Long | _Offered]) -> None:
    opened = open_for_writing(path)
    with closing(opened.connection) as connection:
        # Keys mean nothing in another file, which may have taken the place of the first.
        here = [
            each
            for each in waiting
            if each.place.opened and each.place.opened.identity == opened.identity
        ]
        counts = [_counted(each) for each in here if isinstance(each, _Long)]
        known = {row[0] for row in connection.execute("SELECT id FROM listings")}
        offers = [each for each in here if isinstance(each, _Offered)]
        listings = {
            listing.id: listing.text
            for each in offers
            for listing in (*each.offer.listings, *filter(None, [each.shown]))
            if listing.id not in known
        }
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)", counts)
        connection.executemany("INSERT OR IGNORE INTO listings VALUES (?, ?)", listings.items())
        connection.executemany("INSERT OR IGNORE INTO offers VALUES (?, ?, ?)", map(_row, offers))
        connection.execute("COMMIT")


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

    def insert(self, statement: str, values: tuple[object, ...], key: Callable[[int], int]) -> None:
        """Write a row now, together with those that are held."""
        self.hold(statement, values, key)
        self.flush()

    def hold(self, statement: str, values: tuple[object, ...], key: Callable[[int], int]) -> None:
        """Have a row written together with the next one."""
        self._rows.hold(Row(self._place, statement, values, key, statement is END))

    def flush(self) -> bool:
        """Write the rows that are held; tell whether nothing is lost and nothing waits."""
        return self._rows.flush()

    def count(self, key: Callable[[int], int], part: str, text: str) -> None:
        self._ledger_writer.count(self._place, key, part, text)

    def offer(self, offer: OfferedTools, shown: DefinitionText | None) -> None:
        self._ledger_writer.offer(self._place, offer, shown)
