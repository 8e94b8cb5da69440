"""What the journal knows, for doors: runs, accounts, the audit log; nothing of the database."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from toolfold.errors import StoreError
from toolfold.journal import runs, runsdb
from toolfold.journal.accounts import (
    AccountReader,
    Accounts,
    CountedText,
    NewAccounts,
    RunTokens,
    run_tokens,
)
from toolfold.journal.audit.chain import AUDITED, HASH_BYTES
from toolfold.journal.audit.verify import AuditEntry, entries, read_anchor, row_reader
from toolfold.journal.decisions import TimedDecision, happened
from toolfold.journal.replay import attempts
from toolfold.journal.rows import KEEP_TOKENS
from toolfold.journal.runs import ANY_RUN, Run, RunFilter
from toolfold.storage.tables import SqlTransaction, open_tables

FORMAT: Final = "toolfold-audit-1"

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BEFORE: Final = "SELECT seq, link FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1"


def lines(connection: SqlTransaction, *, since: float = 0.0) -> Iterator[str]:
    """Yield the log from the first entry on that is not older than `since`, in a snapshot.

    Raises:
        StoreError: The log has no anchor, or holds what is no entry.
    """
    anchor = read_anchor(connection)
    if anchor is None:
        raise StoreError("The anchor of the audit log is missing. See `toolfold runs verify`.")
    first = _first(connection, since)
    before = connection.execute(_BEFORE, (first,)).fetchone()
    seq, chain = (before[0], before[1][HASH_BYTES:]) if before else (anchor.seq, anchor.chain)
    yield _encode(
        {
            "format": FORMAT,
            "before": {"seq": seq, "chain": _hex(chain)},
            "first_run": anchor.since,
            "pruned_below": anchor.below,
        }
    )
    run_ids = dict(connection.execute("SELECT number, id FROM beginnings").fetchall())
    row_of = row_reader(connection)
    for entry in entries(connection, first=first):
        if not entry.is_sound:
            raise StoreError(f"Entry {entry.seq} is damaged. See `toolfold runs verify`.")
        yield _encode(_entry(entry, row_of(entry), run_ids.get(entry.number)))


def _first(connection: SqlTransaction, since: float) -> int:
    """Return the first entry that is to be there; entries behind it stay together."""
    found = connection.execute(
        "SELECT coalesce((SELECT seq FROM audit WHERE at >= ? ORDER BY seq LIMIT 1),"
        " (SELECT coalesce(max(seq), 0) + 1 FROM audit))",
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
    SELECT rule, count(*)
    FROM (SELECT rule FROM decisions ORDER BY id DESC LIMIT ?) AS newest GROUP BY rule
"""
_VERSION: Final = """
    SELECT (SELECT max(seq) FROM audit),
        (SELECT sum(done) FROM
            (SELECT done FROM progress ORDER BY number DESC LIMIT 100) AS newest)
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
    connection: SqlTransaction, limit: int = NEWEST_CALLS
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


def journal_version(connection: SqlTransaction) -> tuple[object, ...]:
    """Return a value that changes when a run begins, ends, calls or reports its progress."""
    return tuple(connection.execute(_VERSION).fetchone())


def rule_counts(connection: SqlTransaction, limit: int = NEWEST_CALLS) -> dict[str, int]:
    """Return how often each rule decided among the newest `limit` decisions."""
    return dict(connection.execute(_RULES, (limit,)).fetchall())


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


class SqlJournalReader:
    """Implements `JournalReader` at one moment."""

    def __init__(self, connection: SqlTransaction) -> None:
        self._connection = connection
        self.counted: list[CountedText] = []
        """What was counted for the ledger, to be kept for the next time."""

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
        return self._counting(AccountReader().read(self._connection)).accounts

    def new_accounts(self, reader: AccountReader, most: int) -> NewAccounts:
        """See `JournalReader`."""
        return self._counting(reader.read(self._connection, most))

    def _counting(self, found: NewAccounts) -> NewAccounts:
        self.counted += found.counted
        return found

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
        self._connection.take_any_text()
        yield from lines(self._connection, since=since)


def read_journal(
    path: Path, read: Callable[[JournalReader], _T], database_url: str = ""
) -> _T | None:
    """Ask the journal as it is at one moment; None if there is none.

    Raises:
        StoreError: It does not answer.
    """
    counted: list[CountedText] = []

    def work(transaction: SqlTransaction) -> _T:
        reader = SqlJournalReader(transaction)
        try:
            return read(reader)
        finally:
            counted.extend(reader.counted)

    found = runsdb.read_journal(path, work, database_url)
    if counted:
        keep_counted(path, counted, database_url)
    return found


def keep_counted(path: Path, counted: Sequence[CountedText], database_url: str = "") -> None:
    """Keep what was counted, unless another process holds the journal: it is counted again then."""
    tables = open_tables(path, runsdb.SCHEMA, database_url, stays_open=True)
    tables.be_patient(0)
    with suppress(StoreError):
        tables.write(lambda transaction: transaction.executemany(KEEP_TOKENS, counted))
    tables.close()
