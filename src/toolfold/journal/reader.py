"""What the journal knows, for doors: runs, accounts, the audit log; nothing of the database."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from toolfold.errors import StoreError
from toolfold.journal import runs, runsdb
from toolfold.journal.accounts import (
    AccountReader,
    Accounts,
    NewAccounts,
    RunTokens,
    read_accounts,
    run_tokens,
)
from toolfold.journal.audit.chain import (
    AUDITED,
)
from toolfold.journal.audit.verify import (
    AuditEntry,
    entries,
    read_anchor,
    row_reader,
    snapshot,
)
from toolfold.journal.decisions import TimedDecision, happened
from toolfold.journal.replay import attempts
from toolfold.journal.runs import ANY_RUN, Run, RunFilter

FORMAT: Final = "toolfold-audit-1"

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BEFORE: Final = "SELECT seq, substr(link, 33) FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1"


def lines(connection: sqlite3.Connection, *, since: float = 0.0) -> Iterator[str]:
    """Yield the log from the first entry on that is not older than `since`, in a snapshot.

    Raises:
        StoreError: The log has no anchor, or holds what is no entry.
    """
    anchor = read_anchor(connection)
    if anchor is None:
        raise StoreError("The anchor of the audit log is missing. See `toolfold runs verify`.")
    first = _first(connection, since)
    seq, chain = connection.execute(_BEFORE, (first,)).fetchone() or (anchor.seq, anchor.chain)
    yield _encode(
        {
            "format": FORMAT,
            "before": {"seq": seq, "chain": _hex(chain)},
            "first_run": anchor.since,
            "pruned_below": anchor.below,
        }
    )
    run_ids = dict(connection.execute("SELECT number, id FROM beginnings"))
    row_of = row_reader(connection)
    for entry in entries(connection, first=first):
        if not entry.is_sound:
            raise StoreError(f"Entry {entry.seq} is damaged. See `toolfold runs verify`.")
        yield _encode(_entry(entry, row_of(entry), run_ids.get(entry.number)))


def _first(connection: sqlite3.Connection, since: float) -> int:
    """Return the first entry that is to be there; entries behind it stay together."""
    found = connection.execute(
        "SELECT ifnull((SELECT seq FROM audit WHERE at >= ? ORDER BY seq LIMIT 1),"
        " (SELECT ifnull(max(seq), 0) + 1 FROM audit))",
        (since,),
    ).fetchone()
    return int(found[0])


def _entry(entry: AuditEntry, row: tuple[Any, ...] | None, run_id: str | None) -> dict[str, object]:
    columns = AUDITED[entry.kind].columns
    return {
        "seq": entry.seq,
        "at": entry.at,
        "kind": entry.kind,
        "run": run_id,
        "ref": entry.ref,
        "digest": _hex(entry.link.digest),
        "chain": _hex(entry.link.chain),
        "row": None if row is None else dict(zip(columns, map(_plain, row), strict=True)),
    }


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else ""


def _plain(value: object) -> object:
    """Return a value as JSON has it. One that is no text, or no UTF-8, was never written by us."""
    if isinstance(value, bytes):
        return f"blob:{value.hex()}"
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value


NEWEST_CALLS: Final = 20_000

_CALLS: Final = "SELECT tool, outcome, duration_s, started_at FROM calls ORDER BY id DESC LIMIT ?"
_RULES: Final = """
    SELECT rule, count(*) FROM (SELECT rule FROM decisions ORDER BY id DESC LIMIT ?) GROUP BY rule
"""
_VERSION: Final = """
    SELECT (SELECT max(seq) FROM audit),
        (SELECT total(done) FROM (SELECT done FROM progress ORDER BY number DESC LIMIT 100))
"""
"""Every row of a run has its entry in the audit log, except progress, which changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatistics:
    """How one tool did in the newest calls."""

    calls: int
    errors: int
    p50_s: float
    p95_s: float
    last_at: float


def tool_statistics(
    connection: sqlite3.Connection, limit: int = NEWEST_CALLS
) -> dict[str, ToolStatistics]:
    """Return the statistics of each tool among the newest `limit` calls, by its path."""
    durations: dict[str, list[float]] = {}
    errors: dict[str, int] = {}
    last: dict[str, float] = {}
    for tool, outcome, duration_s, started_at in connection.execute(_CALLS, (limit,)):
        durations.setdefault(tool, []).append(duration_s)
        errors[tool] = errors.get(tool, 0) + (outcome != "ok")
        last[tool] = max(started_at, last.get(tool, 0.0))
    return {
        tool: ToolStatistics(
            calls=len(times),
            errors=errors[tool],
            p50_s=quantile(times, 0.5),
            p95_s=quantile(times, 0.95),
            last_at=last[tool],
        )
        for tool, times in durations.items()
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest of `values` that at least `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def journal_version(connection: sqlite3.Connection) -> tuple[object, ...]:
    """Return a value that changes when a run begins, ends, calls or reports its progress."""
    version: tuple[object, ...] = connection.execute(_VERSION).fetchone()
    return version


def rule_counts(connection: sqlite3.Connection, limit: int = NEWEST_CALLS) -> dict[str, int]:
    """Return how often each rule decided among the newest `limit` decisions."""
    return dict(connection.execute(_RULES, (limit,)))


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

    def find_following(self, run_id: str) -> Run:
        """Return the newest of the runs that went on with a run, or that itself.

        Raises:
            NotFound: There is no such run.
        """

    def recordings(self, run_id: str) -> list[tuple[Run, list[TimedDecision]]]:
        """Return the attempts at a run, each with what was decided and revealed in it.

        Raises:
            NotFound: There is no such run.
        """

    def accounts(self) -> Accounts:
        """Return the ledger."""

    def new_accounts(self, reader: AccountReader, most: int) -> NewAccounts:
        """Return what `reader` has not read before, the oldest `most`."""

    def tokens(self, run_id: str) -> RunTokens | None:
        """Return what a run came to in tokens; None of one that has not ended."""

    def tool_statistics(self) -> dict[str, ToolStatistics]:
        """Return how each tool did in the newest calls, by its path."""

    def rule_counts(self) -> dict[str, int]:
        """Return how often each rule decided among the newest decisions."""

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

    def find_following(self, run_id: str) -> Run:
        """See `JournalReader`."""
        return runs.find_following(self._connection, run_id)

    def recordings(self, run_id: str) -> list[tuple[Run, list[TimedDecision]]]:
        """See `JournalReader`."""
        found = attempts(self._connection, run_id)
        return [(run, happened(self._connection, run.id)) for run in found]

    def accounts(self) -> Accounts:
        """See `JournalReader`."""
        return read_accounts(self._connection)

    def new_accounts(self, reader: AccountReader, most: int) -> NewAccounts:
        """See `JournalReader`."""
        return reader.read(self._connection, most)

    def tokens(self, run_id: str) -> RunTokens | None:
        """See `JournalReader`."""
        return run_tokens(self._connection, run_id)

    def tool_statistics(self) -> dict[str, ToolStatistics]:
        """See `JournalReader`."""
        return tool_statistics(self._connection)

    def rule_counts(self) -> dict[str, int]:
        """See `JournalReader`."""
        return rule_counts(self._connection)

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
