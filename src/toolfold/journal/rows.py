"""Write rows to the journal's file. Trouble is logged and told, and never raised."""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.errors import StoreError
from toolfold.journal.audit.chain import Signer, signer_of
from toolfold.journal.audit.head import advance
from toolfold.journal.runsdb import open_for_writing
from toolfold.storage.locks import PATIENCE_S
from toolfold.storage.sqlite_file import Opened, identity_of, is_busy, is_damage, set_patience

_log = logging.getLogger(__name__)

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


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a run. Its key depends on the number that the first row of the run gets."""

    place: RunLocation
    statement: str
    values: tuple[object, ...]
    key: Callable[[int], int] | None = None
    """From the number of the run; None for the first row, which brings that about."""
    is_end: bool = False
    """Whether it ends the run, so that the head of the audit log moves on."""
    size: int = field(init=False)

    def __post_init__(self) -> None:
        """Take note of about how much memory it holds."""
        texts = (len(value) for value in self.values if isinstance(value, str))
        object.__setattr__(self, "size", _ROW_BYTES + sum(texts))

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

    def write(self, row: Row) -> None:
        """Write a row after those that wait, now or as soon as nobody else holds the file."""
        self.hold(row)
        self.flush()

    def hold(self, row: Row) -> None:
        """Have a row written together with the next one."""
        if self._waiting_bytes + row.size > _MAX_WAITING_BYTES:
            self.flush()
        if self._waiting_bytes + row.size > _MAX_WAITING_BYTES:
            self._miss("too many rows wait for it")
            return
        self._waiting.append(row)
        self._waiting_bytes += row.size

    def flush(self) -> bool:
        """Write the rows that wait, several of them in one go; tell whether all are written now."""
        opened, lost = self.opened, self._lost
        is_one = len(self._waiting) > 1 and opened is not None and _begins(opened.connection)
        while self._waiting and self._is_settled(self._waiting[0]):
            self._waiting_bytes -= self._waiting.popleft().size
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
        return self._gap.reason if self._gap else "it is held by another process"

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
        message = "The journal %s does not take rows, %d so far: %s. Runs go on without it."
        _log.warning(message, self._path, self._missing, reason)
        self._complained_at, self._missing = now, 0

    def _doubt(self, reason: str) -> None:
        if not self._is_doubted:
            message = "The audit log of %s: %s. `toolfold runs verify` says more."
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
