"""What the journal knows, for doors: they see runs and accounts, and nothing of the database."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from toolfold.journal import runs, runsdb
from toolfold.journal.accounts import Accounts, read_accounts
from toolfold.journal.audit.export import lines
from toolfold.journal.audit.verify import snapshot
from toolfold.journal.decisions import TimedDecision, happened
from toolfold.journal.replay import attempts
from toolfold.journal.runs import ANY_RUN, Run, RunFilter
from toolfold.journal.statistics import ToolStatistics, journal_version, tool_statistics

_T = TypeVar("_T")


class JournalReader(Protocol):
    """Reads the journal as it is. Blocks; to be used in a thread where others wait."""

    def newest(self, limit: int, wanted: RunFilter = ANY_RUN) -> list[Run]:
        """Return the newest runs that pass a filter, newest first."""

    def find(self, prefix: str, *, client: str | None = None) -> Run:
        """Return the run whose id begins so.

        Raises:
            NotFound: There is none, or there are several.
        """

    def recordings(self, run_id: str) -> list[tuple[Run, list[TimedDecision]]]:
        """Return the attempts at a run, each with what was decided and revealed in it.

        Raises:
            NotFound: There is no such run.
        """

    def accounts(self) -> Accounts:
        """Return the ledger."""

    def tool_statistics(self) -> dict[str, ToolStatistics]:
        """Return how each tool did in the newest calls, by its path."""

    def version(self) -> tuple[object, ...]:
        """Return a value that changes with everything that happens."""

    def audit_lines(self, *, since: float = 0.0) -> Iterator[str]:
        """Yield the audit log as lines of JSON, as it is at one moment."""


class SqliteJournalReader:
    """Implements `JournalReader` over an open file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def newest(self, limit: int, wanted: RunFilter = ANY_RUN) -> list[Run]:
        """See `JournalReader`."""
        return runs.newest(self._connection, limit, wanted)

    def find(self, prefix: str, *, client: str | None = None) -> Run:
        """See `JournalReader`."""
        return runs.find(self._connection, prefix, client=client)

    def recordings(self, run_id: str) -> list[tuple[Run, list[TimedDecision]]]:
        """See `JournalReader`."""
        found = attempts(self._connection, run_id)
        return [(run, happened(self._connection, run.id)) for run in found]

    def accounts(self) -> Accounts:
        """See `JournalReader`."""
        return read_accounts(self._connection)

    def tool_statistics(self) -> dict[str, ToolStatistics]:
        """See `JournalReader`."""
        return tool_statistics(self._connection)

    def version(self) -> tuple[object, ...]:
        """See `JournalReader`."""
        return journal_version(self._connection)

    def audit_lines(self, *, since: float = 0.0) -> Iterator[str]:
        """See `JournalReader`."""
        with snapshot(self._connection):
            yield from lines(self._connection, since=since)


def read_journal(path: Path, read: Callable[[JournalReader], _T]) -> _T | None:
    """Ask the journal as it is; None if there is none.

    Raises:
        StoreError: The file does not answer.
    """
    return runsdb.read_journal(path, lambda connection: read(SqliteJournalReader(connection)))
