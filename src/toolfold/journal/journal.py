"""The journal: one place where every run and every call of a tool is written down."""

# A row can wait a moment for the next, which only the bare loop can express without a task.
import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from toolfold.config.config import Config
from toolfold.config.processes import is_alive, own_identity
from toolfold.errors import NotFound, StoreDamaged, StoreError, count
from toolfold.journal.audit.chain import signer_of
from toolfold.journal.audit.writer import AuditWriter
from toolfold.journal.decisions import DecisionEvent
from toolfold.journal.observers import BegunRun, JournalObserver
from toolfold.journal.replay import Recorded, read_recorded
from toolfold.journal.retention import Retention, prune
from toolfold.journal.rows import (
    Gap,
    LedgerWriter,
    Row,
    RowWriter,
    RunLocation,
    RunWriter,
    own_number,
)
from toolfold.journal.run_writer import JournaledRun, decision_row, name_kept, text_kept
from toolfold.journal.runs import (
    ANYWHERE,
    WRITTEN,
    Origin,
    Run,
    RunKind,
    RunStart,
    code_text,
    find,
    find_following,
    find_latest,
    find_unfinished,
    number_of,
)
from toolfold.journal.runsdb import SCHEMA, read_journal
from toolfold.storage.files import try_lock
from toolfold.storage.tables import LastingTables, SqlTransaction, open_tables

_log = logging.getLogger(__name__)

_Read = TypeVar("_Read")

_FLUSH_S: Final = 1.0
_MOMENT_S: Final = 0.005
"""For how long rows wait to be written together. What came of the last call is not known after
`kill -9` in it: as if the process had been killed just before the answer."""
_HOUR_S: Final = 3600.0
_DAY_S: Final = 24 * _HOUR_S


class Journal:
    """Writes runs and calls, each row once; only pruning ever touches it again.

    One per process; several processes may use one file, or one database. A row that was written
    survives `kill -9` of the process. When the power fails, the rows of the last moments may be
    gone from a file.

    Trouble with the file never raises. It is logged, and `JournaledCall.send` tells of it; what was
    lost is written down as a gap as soon as anything can be.
    """

    def __init__(
        self,
        path: Path,
        *,
        days: int,
        max_bytes: int,
        code_bytes: int,
        clock: Callable[[], float] = time.time,
        database_url: str = "",
    ) -> None:
        """`path` is that of the file; beside it are the key and the head, wherever rows are."""
        self._path = path
        self._database_url = database_url
        self._days = days
        self._max_bytes = max_bytes
        self._code_bytes = code_bytes
        self._clock = clock
        self._tables = open_tables(path, SCHEMA, database_url, stays_open=True)
        self._rows = RowWriter(self._tables, path, clock=clock, gap_rows=self._gap_rows)
        self._ledger_writer = LedgerWriter(self._tables)
        self._soon: Callable[[Callable[[], None]], object] = lambda write: write()
        self._active: dict[str, JournaledRun] = {}
        self.observers: list[JournalObserver] = []

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep the file open for the length of this context."""
        self._rows.open()
        try:
            yield
        finally:
            self._ledger_writer.settle()
            self._rows.close()

    @asynccontextmanager
    async def running(self, *, may_fork: bool = False) -> AsyncIterator[None]:
        """As `opened`, and pruned now and then. Rows wait a moment for others to be written with.

        They are still written before the next call begins that may change something.

        In a process that `may_fork` rows are written at once and what is old is deleted first: a
        child has no use of a file that another thread was writing to.
        """
        if may_fork:
            self._prune_if_possible()
            with self.opened():
                yield
            return
        self._soon = partial(asyncio.get_running_loop().call_later, _MOMENT_S)
        with self.opened():
            async with anyio.create_task_group() as background:
                background.start_soon(self._keep_pruned)
                background.start_soon(self._keep_written)
                yield
                background.cancel_scope.cancel()

    async def _keep_written(self) -> None:
        """Write what had to wait, though no other row comes."""
        while True:
            await anyio.sleep(_FLUSH_S)
            self._rows.catch_up()
            if not self._ledger_writer.is_empty:
                await anyio.to_thread.run_sync(self._ledger_writer.settle)

    async def _keep_pruned(self) -> None:
        while True:
            await anyio.to_thread.run_sync(self._prune_if_possible)
            await anyio.sleep(_HOUR_S)

    def _prune_if_possible(self) -> None:
        try:
            self.prune()
        except StoreError as error:
            _log.warning("Old runs stay in the journal for another hour: %s", error)

    def prune(self) -> None:
        """Delete the runs that are too old, and the oldest while there is too much.

        Those of the last hour stay. May be called from any thread.

        Raises:
            StoreError: The file does not answer.
        """
        now = self._clock()
        kept = Retention(now - self._days * _DAY_S, now - _HOUR_S, self._max_bytes)
        tables = self._separate_tables()
        try:
            prune(tables, signer_of(self._path), kept)
        except StoreDamaged:
            tables.read(lambda _: None)  # the next run finds that another file is in its place
            raise
        finally:
            tables.close()

    def _separate_tables(self) -> LastingTables:
        """Return the tables for who must not keep runs from being written."""
        return open_tables(self._path, SCHEMA, self._database_url, stays_open=True)

    def begin(
        self,
        origin: Origin,
        code: str,
        *,
        kind: RunKind = "code",
        start: RunStart = ANYWHERE,
        run_id: str = "",
    ) -> "JournaledRun":
        """Write down that a run begins, under a new id unless it has one already.

        It is on disk before anything of the run is that changes something, and in a moment.
        """
        now = self._clock()
        run_id = run_id or self.new_id()
        asked = map(name_kept, (origin.client, origin.request, origin.project))
        kept = text_kept(code, self._code_bytes)
        row = (run_id, now, *asked, own_identity(), *kept, kind, *start)
        place = RunLocation()
        self._rows.hold(Row(place, "begin", row))
        if kept[2] is not None and kind in WRITTEN:
            self._ledger_writer.count(place, own_number, "written", code_text(code))
        writer = RunWriter(place, self._rows, self._ledger_writer)
        ended = partial(self._active.pop, run_id, None)
        begun = BegunRun(run_id, kind, origin)
        run = JournaledRun(
            run_id,
            writer,
            soon=self._soon,
            clock=self._clock,
            on_end=ended,
            observers=[each.run(begun) for each in self.observers],
        )
        self._active[run_id] = run
        run.write_soon()
        return run

    def flush(self) -> None:
        """Write what waits for other rows."""
        self._rows.flush()

    def _gap_rows(self, gap: Gap, now: float) -> tuple[tuple[object, ...], tuple[object, ...]]:
        """Return the first and the last row of a run for what could not be written."""
        said = f"# {count(gap.rows, 'row')} of the journal could not be written: {gap.reason}."
        begin = self.new_id(), gap.since, "", "", "", own_identity(), *text_kept(said), "gap"
        return (*begin, *ANYWHERE), (now, None, *text_kept(""))

    @property
    def is_held_up(self) -> bool:
        """Whether rows wait for somebody else who has the file."""
        return self._rows.is_held_up

    @property
    def trouble(self) -> str:
        """Why the last row was lost."""
        return self._rows.trouble

    def is_under_way(self, run: Run) -> bool:
        """Whether a run has not ended, and its process works on it still."""
        if run.ending is not None:
            return False
        if run.process in {own_identity(), os.getpid()}:
            return run.id in self._active
        return is_alive(run.process, run.began_at)

    def under_way(self) -> dict[str, list[str]]:
        """Return the runs of this process that have not ended, with the tools they wait for."""
        return {run_id: self.calling(run_id) for run_id in list(self._active)}

    def calling(self, run_id: str) -> list[str]:
        """Return the tools that a run of this process waits for, in the order of the calls."""
        run = self._active.get(run_id)
        return list(run.calling.values()) if run else []

    @contextmanager
    def claimed(self, run_id: str) -> Iterator[bool]:
        """Be the only one, of all processes, that goes on with a run; tell whether one is."""
        directory = self._path.with_name("resuming")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / f"{run_id}.lock"
        with path.open("a") as lock:
            is_ours = try_lock(lock.fileno()) and os.fstat(lock.fileno()).st_nlink > 0
            try:
                yield is_ours
            finally:
                if is_ours:
                    path.unlink(missing_ok=True)

    def new_id(self) -> str:
        """Return an id that no run has."""
        return f"{int(self._clock()):08x}{secrets.token_hex(4)}"

    def following(self, run_id: str) -> Run:
        """Return the newest of the runs that went on with a run, or that itself.

        Raises:
            NotFound: There is none.
            StoreError: The file does not answer.
        """
        return self._read(run_id, find_following)

    def decide(self, run_id: str, decided: DecisionEvent) -> None:
        """Write what was decided about a run, in whichever process that is.

        Raises:
            NotFound: There is no such run.
            StoreError: It is not written.
        """
        signer, row = signer_of(self._path), decision_row(decided, self._clock())

        def work(transaction: SqlTransaction) -> None:
            number = number_of(transaction, run_id)
            if number is None:
                raise NotFound(f"No run has the id {run_id!r}. `toolfold runs` lists them.")
            AuditWriter(transaction, signer).add_next("decision", number, row)

        tables = self._separate_tables()
        try:
            tables.write(work)
        finally:
            tables.close()

    def latest(self, client: str, request: str) -> Run | None:
        """Return the newest run of that origin with its calls, whether it ended or not.

        Raises:
            StoreError: The file does not answer.
        """
        self._rows.flush()
        names = name_kept(client), name_kept(request)
        return self._tables.read(lambda transaction: find_latest(transaction, *names))

    def interrupted(self, client: str, most: int) -> list[Run]:
        """Return the newest runs of a client that ended with their process, newest first.

        Raises:
            StoreError: The file does not answer.
        """
        found = read_journal(
            self._path,
            lambda transaction: find_unfinished(transaction, name_kept(client), most),
            self._database_url,
        )
        return [run for run in found or () if not self.is_under_way(run)]

    def recorded(self, run_id: str) -> Recorded:
        """Return what is written of a run that did not come to its own end.

        Raises:
            NotFound: There is no such run, or nothing can be resumed.
            StoreError: The file does not answer.
        """
        return self._read(run_id, read_recorded)

    def find(self, run_id: str) -> Run:
        """Return a run with its calls.

        Raises:
            NotFound: There is none.
            StoreError: The file does not answer.
        """
        return self._read(run_id, find)

    def _read(self, run_id: str, read: Callable[[SqlTransaction, str], _Read]) -> _Read:
        self._rows.flush()
        found = read_journal(
            self._path, lambda transaction: read(transaction, run_id), self._database_url
        )
        if found is None:
            raise NotFound(f"No run has an id that begins with {run_id!r}: there is no journal.")
        return found


def journal_of(config: Config) -> Journal:
    """Return the journal of a configuration, which nobody has opened."""
    return Journal(
        config.directories.data / "runs.db",
        days=config.settings.journal_days,
        max_bytes=config.settings.journal_bytes,
        code_bytes=config.settings.limits.code_bytes,
    )
