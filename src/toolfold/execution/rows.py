"""Write rows to the journal's file. Trouble is logged, and never raised."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolfold.errors import StoreError
from toolfold.execution.runsdb import (
    PATIENCE_S,
    Opened,
    identity_of,
    is_busy,
    is_damage,
    open_for_writing,
    set_patience,
)

_log = logging.getLogger(__name__)

_MINUTE_S: Final = 60.0


class RowWriter:
    """Holds the file open, and another in its place when it is damaged or gone.

    Rows that could not be written are counted, and the count is logged at most once a minute.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self.opened: Opened | None = None
        self._path = path
        self._clock = clock
        self._is_patient = True
        self._missing = 0
        self._complained_at = float("-inf")

    def open(self, *, damaged: Opened | None = None) -> None:
        """Open the file; one known to be `damaged` is set aside."""
        self._is_patient = True
        try:
            self.opened = open_for_writing(self._path, damaged=damaged and damaged.identity)
        except StoreError as error:
            self._complain(str(error))

    def close(self) -> None:
        """Close the file, and say what was not said yet."""
        self._let_go()
        if self._missing:
            _log.warning("The journal %s misses %d more rows.", self._path, self._missing)
            self._missing = 0

    def follow(self) -> None:
        """Open what is at the path now, if that is not the file that is open."""
        if self.opened is None or identity_of(self._path) != self.opened.identity:
            self._let_go()
            self.open()

    def insert(self, opened: Opened | None, statement: str, row: tuple[object, ...]) -> int | None:
        """Write one row to `opened`; return its key, or None if it is not written.

        The keys of a file mean nothing in another, so a file that is not open any more gets none.
        """
        if opened is None or opened is not self.opened:
            self._miss("the run began when there was no such file")
            return None
        try:
            key = opened.connection.execute(statement, row).lastrowid
        except sqlite3.Error as error:
            self._miss(str(error))
            self._cope(opened, error)
            return None
        if not self._is_patient:
            self._wait_for_others(opened, seconds=PATIENCE_S)
        return key

    def _cope(self, opened: Opened, error: sqlite3.Error) -> None:
        if is_damage(error):
            self._let_go()
            self.open(damaged=opened)
        elif is_busy(error):
            # Waiting stops every run of the process: once is enough, until a row succeeds.
            self._wait_for_others(opened, seconds=0)

    def _wait_for_others(self, opened: Opened, *, seconds: float) -> None:
        self._is_patient = seconds > 0
        set_patience(opened.connection, seconds)

    def _miss(self, reason: str) -> None:
        self._missing += 1
        self._complain(reason)

    def _complain(self, reason: str) -> None:
        now = self._clock()
        if now - self._complained_at < _MINUTE_S:
            return
        message = "The journal %s does not take rows, %d so far: %s. Runs go on without it."
        _log.warning(message, self._path, self._missing, reason)
        self._complained_at, self._missing = now, 0

    def _let_go(self) -> None:
        if self.opened is not None:
            self.opened.connection.close()
            self.opened = None
