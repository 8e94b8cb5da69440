"""The journal: one place where every run and every call of a tool is written down."""

# A row can wait until the guest has its value, which only the bare loop can express.
import asyncio
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from toolfold.catalog.definitions import Listing
from toolfold.config.database import is_damage
from toolfold.config.locks import try_lock
from toolfold.config.processes import is_alive_since
from toolfold.errors import NotFound, StoreError, ToolfoldError, UpstreamTimedOut
from toolfold.execution.books import Books, Offer
from toolfold.execution.decisions import DECIDE, REVEAL, Decided, Revealed
from toolfold.execution.packing import has_tuples, pack
from toolfold.execution.pruning import prune
from toolfold.execution.replay import Recorded, read_recorded
from toolfold.execution.rows import Place, Row, RowWriter
from toolfold.execution.runs import (
    ANYWHERE,
    CALLS_BITS,
    RESUMABLE,
    Kind,
    Origin,
    Outcome,
    Run,
    Start,
    find,
    find_following,
    find_latest,
)
from toolfold.execution.runsdb import RESUMING, open_for_reading, open_for_writing
from toolfold.execution.texts import answer_text, code_text, tool_text
from toolfold.jsontypes import Json, JsonObject, plain

_log = logging.getLogger(__name__)

_Read = TypeVar("_Read")

_TEXT_BYTES: Final = 64 * 1024
_NAME_BYTES: Final = 4 * 1024
_FLUSH_S: Final = 1.0
_HOUR_S: Final = 3600.0
_DAY_S: Final = 24 * _HOUR_S

_BEGIN: Final = """
    INSERT INTO beginnings (id, began_at, client, request, project, process, kind,
        code, code_bytes, code_sha256, session, generation, resumes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_CALL: Final = "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_END: Final = "INSERT INTO ends VALUES (?, ?, ?, ?, ?, ?)"
_INTENT: Final = "INSERT INTO intents VALUES (?, ?, ?, ?)"
_WHOLE: Final = "INSERT INTO wholes VALUES (?, ?)"
_CLOCK: Final = "INSERT INTO clocks VALUES (?, ?)"
_PROGRESS: Final = "INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?)"
_SETTLED: Final = [
    f"DELETE FROM {table} WHERE id BETWEEN ?1 << {CALLS_BITS} AND (?1 + 1 << {CALLS_BITS}) - 1"  # noqa: S608
    for table in RESUMING
]
_MOST_READINGS: Final = 100_000
_MOST_READ_BYTES: Final = 1 << 20
_MOST_WHOLE_BYTES: Final = 64 << 20
_PROGRESS_S: Final = 0.5

_NOTHING: Final[tuple[str | None, int | None, str | None]] = None, None, None

_encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":")
).encode


class Journal:
    """Writes runs and calls, each row once; only pruning ever touches it again.

    One per process; several processes may use one file. A row that was written survives `kill -9`
    of the process. When the power fails, the rows of the last moments may be gone.

    Trouble with the file never stops a run. It is logged.
    """

    def __init__(
        self,
        path: Path,
        *,
        days: int,
        max_bytes: int,
        code_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._days = days
        self._max_bytes = max_bytes
        self._code_bytes = code_bytes
        self._clock = clock
        self._rows = RowWriter(path, clock=clock)
        self._books = Books(path)
        self._soon: Callable[[Callable[[], None]], object] = lambda write: write()
        self._active: set[str] = set()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep the file open for the length of this context."""
        self._rows.open()
        try:
            yield
        finally:
            self._books.settle()
            self._rows.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """As `opened`, and pruned now and then. Rows of calls wait until the guest has its value.

        They are still written before its next call begins.
        """
        self._soon = asyncio.get_running_loop().call_soon
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
            if not self._books.is_empty:
                await anyio.to_thread.run_sync(self._books.settle)

    async def _keep_pruned(self) -> None:
        while True:
            try:
                await anyio.to_thread.run_sync(self.prune)
            except StoreError as error:
                _log.warning("Old runs stay in the journal for another hour: %s", error)
            await anyio.sleep(_HOUR_S)

    def prune(self) -> None:
        """Delete the runs that are too old, and the oldest while there is too much.

        Those of the last hour stay. May be called from any thread.

        Raises:
            StoreError: The file does not answer.
        """
        now = self._clock()
        oldest, spared = now - self._days * _DAY_S, now - _HOUR_S
        opened = open_for_writing(self._path)
        try:
            with closing(opened.connection) as connection:
                prune(connection, oldest=oldest, spared=spared, max_bytes=self._max_bytes)
        except sqlite3.Error as error:
            if is_damage(error):  # the next run finds that another file is in its place
                open_for_writing(self._path, damaged=opened.identity).connection.close()
            raise StoreError(f"{self._path}: {error}") from error

    def begin(
        self,
        origin: Origin,
        code: str,
        *,
        kind: Kind = "code",
        start: Start = ANYWHERE,
        run_id: str = "",
    ) -> "JournaledRun":
        """Write down that a run begins, under a new id unless it has one already."""
        now = self._clock()
        run_id = run_id or self.new_id()
        asked = map(_name, (origin.client, origin.request, origin.project))
        kept = _kept(code, self._code_bytes)
        row = (run_id, now, *asked, os.getpid(), kind, *kept, *start)
        self._rows.follow()
        place = Place()
        self._rows.write(Row(place, _BEGIN, row))
        if kept[2] is not None and kind == "code":
            self._books.count(place, _own_number, "written", code_text(code))
        writer = _RunWriter(place, self._rows, self._books)
        self._active.add(run_id)
        ended = partial(self._active.discard, run_id)
        return JournaledRun(run_id, writer, soon=self._soon, clock=self._clock, on_end=ended)

    def is_under_way(self, run: Run) -> bool:
        """Whether a run has not ended, and its process works on it still."""
        if run.ending is not None:
            return False
        if run.process == os.getpid():
            return run.id in self._active
        return is_alive_since(run.process, run.began_at)

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

    def decide(self, run_id: str, decided: Decided) -> None:
        """Write what was decided about a run, in whichever process that is.

        Raises:
            NotFound: There is no such run.
            StoreError: It is not written.
        """
        opened = open_for_writing(self._path)
        try:
            with closing(opened.connection) as connection:
                number = connection.execute(
                    "SELECT number FROM beginnings WHERE id = ?", (run_id,)
                ).fetchone()
                if number is None:
                    raise NotFound(f"No run has the id {run_id!r}. `toolfold runs` lists them.")
                connection.execute(DECIDE, (*number, *_decision(decided, self._clock())))
        except sqlite3.Error as error:
            raise StoreError(f"The journal {self._path} cannot be written: {error}") from error

    def latest(self, client: str, request: str) -> Run | None:
        """Return the newest run of that origin with its calls, whether it ended or not.

        Raises:
            StoreError: The file does not answer.
        """
        if self._rows.opened is None:
            raise StoreError(f"The journal {self._path} is not open.")
        try:
            return find_latest(self._rows.opened.connection, _name(client), _name(request))
        except sqlite3.Error as error:
            raise StoreError(f"The journal {self._path} cannot be read: {error}") from error

    def recorded(self, run_id: str) -> Recorded:
        """Return what is written of a run that did not come to its own end.

        Raises:
            NotFound: There is no such run, or nothing can be gone on with.
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

    def _read(self, run_id: str, read: Callable[[sqlite3.Connection, str], _Read]) -> _Read:
        self._rows.flush()
        connection = open_for_reading(self._path)
        if connection is None:
            raise NotFound(f"No run has an id that begins with {run_id!r}: there is no journal.")
        try:
            with closing(connection):
                return read(connection, run_id)
        except sqlite3.Error as error:
            raise StoreError(f"The journal {self._path} cannot be read: {error}") from error


class _RunWriter:
    """Writes the rows of one run, and what the ledger needs besides."""

    def __init__(self, place: Place, rows: RowWriter, books: Books) -> None:
        self._place = place
        self._rows = rows
        self._books = books

    def insert(self, statement: str, values: tuple[object, ...], key: Callable[[int], int]) -> None:
        self._rows.write(Row(self._place, statement, values, key, statement is _END))

    def count(self, key: Callable[[int], int], part: str, text: str) -> None:
        self._books.count(self._place, key, part, text)

    def offer(self, offer: Offer, shown: Listing | None) -> None:
        self._books.offer(self._place, offer, shown)


class JournaledRun:
    """Writes what happens in one run: a context, which ends the run if an exception leaves it."""

    def __init__(
        self,
        run_id: str,
        writer: _RunWriter,
        *,
        soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.id = run_id
        self._on_end = on_end
        self._writer = writer
        self._soon = soon
        self._clock = clock
        self._begun = 0
        self._waiting: list[JournaledCall] = []
        self._readings: list[float] = []
        self._readings_written = 0
        self._whole_bytes = 0
        self._progress_at = float("-inf")

    def __enter__(self) -> "JournaledRun":
        """Begin nothing: the beginning is written already."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Write the end of a run that did not come to its own."""
        if error is not None:
            is_cancelled = isinstance(error, anyio.get_cancelled_exc_class())
            reply = "" if is_cancelled else f"{type(error).__name__}: {error}"
            self.end(failure="cancelled" if is_cancelled else "crash", reply=reply)

    def call(self, tool: str, arguments: JsonObject) -> "JournaledCall":
        """Return a context for one call of a tool, which is written as the context ends."""
        self._begun += 1
        return JournaledCall(self._begun, tool, arguments, self._clock(), self)

    def read_clock(self) -> float:
        """Return the time, and have it written before the next call. May be called from a thread.

        A run that reads it without end is not written any more, and cannot be resumed exactly.
        """
        now = self._clock()
        if self._readings_written + len(self._readings) < _MOST_READINGS:
            self._readings.append(now)
        return now

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Write how far the run says it is, twice a second at most."""
        now = time.monotonic()
        if now - self._progress_at >= _PROGRESS_S or done == total:
            self._progress_at = now
            self._writer.insert(_PROGRESS, (done, total, _name(note)), _own_number)

    def intend(self, call: "JournaledCall") -> None:
        """Write that a call is about to be made, which cannot be made twice without harm."""
        self._write_calls()
        arguments, _, sha256 = _kept(_as_json(call.arguments))
        self._writer.insert(_INTENT, (call.tool, arguments, sha256), call.key)

    def decide(self, decided: Decided) -> None:
        """Write what was decided about a call."""
        self._write_calls()
        self._writer.insert(DECIDE, _decision(decided, self._clock()), _own_number)

    def reveal(self, revealed: Revealed) -> None:
        """Write that an upstream is shown personal data."""
        self._write_calls()
        row = revealed.position, _name(revealed.upstream), _name(revealed.kind), revealed.count
        self._writer.insert(REVEAL, (*row, self._clock()), _own_number)

    def offer(self, offer: Offer, *, shown: Listing | None = None) -> None:
        """Have it written which tools there were, and the definitions that the model saw of us."""
        self._writer.offer(offer, shown)

    def end(self, *, failure: str | None, reply: str) -> None:
        """Write how the run ended: the kind of failure if there was one, and what was replied."""
        self._on_end()
        self._write_calls()
        kept = _kept(reply)
        self._writer.insert(_END, (self._clock(), failure, *kept), _own_number)
        if failure not in RESUMABLE:
            for statement in _SETTLED:
                self._writer.insert(statement, (), _own_number)
        if kept[2] is not None:
            self._writer.count(_own_number, "read", reply)

    def add(self, call: "JournaledCall") -> None:
        """Have a call written that has ended."""
        self._waiting.append(call)
        if len(self._waiting) == 1:
            self._soon(self._write_calls)

    def _write_calls(self) -> None:
        written, self._waiting = self._waiting, []
        self._write_readings()
        for call in written:
            self._writer.insert(_CALL, call.row(), call.key)
            whole = call.whole()
            if whole is not None and self._has_room(call, len(whole)):
                self._writer.insert(_WHOLE, (whole,), call.key)
            for part, text in call.cut.items():
                self._writer.count(call.key, part, text)

    def _has_room(self, call: "JournaledCall", size: int) -> bool:
        """Whether an answer is kept whole: what was only read can be read again."""
        if call.is_reading and size > _MOST_READ_BYTES:
            return False
        self._whole_bytes += size
        return self._whole_bytes <= _MOST_WHOLE_BYTES

    def _write_readings(self) -> None:
        count = len(self._readings)
        if count:
            readings, first = self._readings[:count], self._readings_written
            del self._readings[:count]
            self._readings_written += count
            self._writer.insert(
                _CLOCK, (_encode(readings),), lambda number: (number << CALLS_BITS) + first
            )


class JournaledCall:
    """One call as it happens. Set `arguments` to what is sent, and `answer` to what comes back."""

    __slots__ = ("_began", "_duration_s", "_error", "_outcome", "_raised", "_run", "_started_at",
                 "answer", "arguments", "cut", "is_reading", "is_replayed", "position",
                 "tool")  # fmt: skip

    def __init__(
        self,
        position: int,
        tool: str,
        arguments: JsonObject,
        started_at: float,
        run: JournaledRun,
    ) -> None:
        self.answer: Any = None
        self.cut: dict[str, str] = {}
        """What the row does not have whole, by the names that the ledger has for it."""
        self.position = position
        self.is_reading = False
        """Whether the tool only reads."""
        self.is_replayed = False
        """Whether an earlier attempt of the run has made it, and written it down."""
        self.tool = tool
        self.arguments = arguments
        self._started_at = started_at
        self._run = run
        self._raised = ""
        self._outcome: Outcome = "ok"
        self._error: str | None = None
        self._began = time.perf_counter()
        self._duration_s = 0.0

    def __enter__(self) -> "JournaledCall":
        """Begin nothing: the clock runs already."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Have the call written, whichever way it ended."""
        self._duration_s = time.perf_counter() - self._began
        if error is not None:
            is_known = isinstance(error, ToolfoldError)
            self._outcome = "failed" if is_known else "unknown"
            self._error = str(error) if is_known else "The run stopped before the tool answered."
            self._raised = error.code if isinstance(error, ToolfoldError) else ""
        if not self.is_replayed:
            self._run.add(self)

    def intend(self) -> None:
        """Write down that it is about to be made."""
        self._run.intend(self)

    def reveal(self, upstream: str, kinds: Mapping[str, int]) -> None:
        """Write down that it is about to show personal data: how many of each kind, never what."""
        for kind, count in kinds.items():
            self._run.reveal(
                Revealed(position=self.position, upstream=upstream, kind=kind, count=count)
            )

    def key(self, number: int) -> int:
        """Return its key in the run of that number."""
        return (number << CALLS_BITS) + self.position

    def row(self) -> tuple[Any, ...]:
        """Return what is kept of it beside the key, in the order of the columns."""
        arguments, answer = _as_json(self.arguments), _NOTHING
        kept_arguments = _kept(arguments)
        if kept_arguments[2] is not None:
            self.cut["written"] = tool_text(self.tool, arguments)
        if self._outcome == "ok":
            answer = _kept(text := _as_json(plain(self.answer)))
            if answer[2] is not None:
                self.cut["read"] = answer_text(text)
        error = None
        if self._error is not None:
            error, size, cut_sha256 = _kept(self._error)
            if cut_sha256 is not None:  # the model would have read it in place of an answer
                answer = None, size, cut_sha256
                self.cut["read"] = self._error
        times = self._started_at, self._duration_s
        return (self.tool, self._outcome, *kept_arguments, *answer, error, *times)

    def whole(self) -> str | None:
        """Return what its row does not tell and a resumed run needs; None if it tells all."""
        if self._outcome == "ok" and ("read" in self.cut or has_tuples(self.answer)):
            return _as_json(pack(self.answer))
        if self._outcome == "failed" and self._raised == UpstreamTimedOut.code:
            return _encode(self._raised)
        return None


def _decision(decided: Decided, now: float) -> tuple[object, ...]:
    texts = decided.tool, decided.rule, decided.action, decided.by, decided.arguments_sha256
    return (decided.position, *map(_name, texts), now)


def _own_number(number: int) -> int:
    return number


def _as_json(value: Json) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        return _encode(f"This cannot be written as JSON: {error}")


def _name(text: str) -> str:
    return _kept(text, _NAME_BYTES)[0]


def _kept(text: str, max_bytes: int = _TEXT_BYTES) -> tuple[str, int, str | None]:
    """Return what is kept of a text, the size of the whole, and its hash if that is not all."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        encoded = text.encode("utf-8", "replace")
        text = encoded.decode()
    if len(encoded) <= max_bytes:
        return text, len(encoded), None
    head = encoded[:max_bytes].decode("utf-8", "ignore")
    return head, len(encoded), hashlib.sha256(encoded).hexdigest()
