"""Approvals: what runs wait for, and what the user decided."""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.to_thread

from toolfold.config.config import Config
from toolfold.errors import NotFound, StoreError
from toolfold.execution.trust.pinned_definitions import SCHEMA as DEFINITIONS
from toolfold.execution.trust.pinned_definitions import PinnedDefinitions
from toolfold.journal.decisions import DecidedAction, DecisionEvent
from toolfold.journal.journal import Journal
from toolfold.storage.migrations import CopiedColumns, DatabaseSchema
from toolfold.storage.secrets import read_key
from toolfold.storage.tables import SqlTransaction, open_tables

ApprovalState = Literal["pending", "approved", "rejected", "expired"]

_COLUMNS: Final = (
    "id, run, attempt, project, client, tool, position, arguments, arguments_sha256, known, rule, "
    "made, waits_alive, asked_at, expires_at, state, most, decided_at, decided_by, "
    "definition"
)
SCHEMA: Final = DatabaseSchema(
    "the file of approvals",
    0x746F6C61,
    (
        (
            """
            CREATE TABLE approvals (
                id TEXT PRIMARY KEY,
                run TEXT NOT NULL,
                attempt TEXT NOT NULL,
                project TEXT NOT NULL,
                client TEXT NOT NULL,
                tool TEXT NOT NULL,
                position INTEGER NOT NULL,
                arguments TEXT NOT NULL,
                arguments_sha256 TEXT NOT NULL,
                known INTEGER NOT NULL,
                rule TEXT NOT NULL,
                waits_alive INTEGER NOT NULL,
                asked_at REAL NOT NULL,
                expires_at REAL NOT NULL,
                state TEXT NOT NULL,
                most INTEGER NOT NULL,
                decided_at REAL,
                decided_by TEXT NOT NULL,
                seal TEXT NOT NULL
            )
            """,
            "CREATE INDEX approvals_by_run ON approvals (run)",
            """
            CREATE TABLE standing (
                scope TEXT NOT NULL,
                tool TEXT NOT NULL,
                since REAL NOT NULL,
                seal TEXT NOT NULL,
                PRIMARY KEY (scope, tool)
            )
            """,
        ),
        ("ALTER TABLE approvals ADD COLUMN made INTEGER NOT NULL DEFAULT 0",),
        (
            "ALTER TABLE approvals ADD COLUMN definition TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE standing ADD COLUMN definition TEXT NOT NULL DEFAULT ''",
        ),
    ),
    tables=(
        CopiedColumns("approvals", f"{_COLUMNS}, seal"),
        CopiedColumns("standing", "scope, tool, since, seal, definition", 2),
    ),
    key="approvals.key",
)
_SUPERSEDE: Final = """
    DELETE FROM approvals
    WHERE state = 'pending' AND run = ? AND (tool = ? OR attempt != ?)
"""
"""A run has one open question about a tool, and none that an earlier attempt at it asked."""

_MARKS: Final = ", ".join("?" * (_COLUMNS.count(",") + 2))
_CHANGES: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
_WRITE: Final = (
    f"INSERT INTO approvals ({_COLUMNS}, seal) VALUES ({_MARKS}) "  # noqa: S608
    f"ON CONFLICT (id) DO UPDATE SET {_CHANGES}, seal = excluded.seal"
)
_ALLOW: Final = """
    INSERT INTO standing (scope, tool, since, seal, definition) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (scope, tool) DO UPDATE
    SET since = excluded.since, seal = excluded.seal, definition = excluded.definition
"""
_WITHIN: Final = "(scope = ? OR substr(scope, 1, ?) = ?)"
_MAX_PENDING: Final = 1_000
_OLD_S: Final = 30 * 24 * 3600.0
_EXPIRY_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What a run wants to do, and the user is asked about."""

    run: str
    """The first attempt at it: later ones go on with the same question."""
    attempt: str
    project: str
    client: str
    tool: str
    position: int
    """Of the call that waits, in its run."""
    arguments: str
    """As JSON; the head of it where they are long."""
    arguments_sha256: str
    known: int
    """How many calls of the tool wait already."""
    made: int
    """How many calls of the tool its run has made before, in all attempts."""
    rule: str
    definition: str = ""
    """The digest of what the tool says of itself."""
    waits_alive: bool = False
    """Whether its process waits, where the run cannot be frozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(ApprovalRequest):
    """The same with what became of it."""

    id: str
    asked_at: float
    expires_at: float
    state: ApprovalState
    most: int
    """How many calls are approved, the one that waits included."""
    decided_at: float | None
    decided_by: str


class Approvals:
    """Keeps them. Rows that somebody else wrote are no approvals: each is sealed with a key."""

    def __init__(
        self,
        directory: Path,
        *,
        valid_s: float,
        database_url: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """They are in a file of that directory, or in a PostgreSQL; their key is in it always."""
        self._tables = open_tables(directory / "approvals.db", SCHEMA, database_url)
        self._key_file = directory / SCHEMA.key
        self._valid_s = valid_s
        self._clock = clock
        pinned = open_tables(directory / "definitions.db", DEFINITIONS, database_url)
        self.definitions = PinnedDefinitions(pinned, clock=clock)
        """With which definitions tools were used."""

    def ask(self, wanted: ApprovalRequest) -> Approval:
        """Write down that a run waits for the user; it does so until the question expires.

        Raises:
            StoreError: The database does not take it, or too many wait.
        """
        now = self._clock()
        approval = Approval(
            **{name: getattr(wanted, name) for name in ApprovalRequest.__dataclass_fields__},
            id=secrets.token_hex(8),
            asked_at=now,
            expires_at=now + self._valid_s,
            state="pending",
            most=0,
            decided_at=None,
            decided_by="",
        )

        def work(connection: SqlTransaction) -> None:
            connection.execute("DELETE FROM approvals WHERE expires_at < ?", (now - _OLD_S,))
            connection.execute(_SUPERSEDE, (wanted.run, wanted.tool, wanted.attempt))
            (pending,) = connection.execute(
                "SELECT count(*) FROM approvals WHERE state = 'pending' AND expires_at > ?", (now,)
            ).fetchone()
            if pending >= _MAX_PENDING:
                raise StoreError(f"{_MAX_PENDING} runs wait for approval already.")
            self._write(connection, approval)

        self._tables.write(work)
        return approval

    def decide(self, approval_id: str, state: ApprovalState, *, most: int, by: str) -> Approval:
        """Write down what the user decided about a question that is open.

        Raises:
            NotFound: There is none, or it was decided, or it has expired.
            StoreError: The database does not take it.
        """
        now = self._clock()

        def work(connection: SqlTransaction) -> Approval:
            approval = self._find(connection, "id = ?", (approval_id,))
            if approval is None:
                raise NotFound(f"There is no question {approval_id!r}.")
            self._check_open(approval, now)
            decided = _replaced(
                approval, state=state, most=most, decided_at=now, decided_by=by,
                expires_at=now + self._valid_s,
            )  # fmt: skip
            self._write(connection, decided)
            return decided

        return self._tables.write(work)

    def expire(self, note: Callable[[Approval], None]) -> None:
        """Close what nobody answered in time; `note` is told of each before.

        A run that waits alive says so by itself.

        Raises:
            StoreError: The database does not take it.
        """

        def work(connection: SqlTransaction) -> None:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, seal FROM approvals WHERE state = 'pending' "  # noqa: S608
                "AND expires_at < ? AND waits_alive = 0",
                (self._clock(),),
            ).fetchall()
            for approval in filter(None, map(self._read, rows)):
                note(approval)
                self._write(connection, _replaced(approval, state="expired"))

        if self._tables.is_there():
            self._tables.write(work)

    def _check_open(self, approval: Approval, now: float) -> None:
        if approval.state not in {"pending", "expired"}:
            raise NotFound(
                f"This was decided already: {approval.tool} was {approval.state}, by "
                f"{approval.decided_by}. Your answer changed nothing."
            )
        if approval.state == "expired" or approval.expires_at < now:
            raise NotFound(
                f"The question about {approval.tool} has expired. Nothing was done; run the code "
                "again to be asked again."
            )

    def latest(self, run: str, tool: str) -> Approval | None:
        """Return the newest question about a tool in a run that is sealed by us."""
        return self._found("run = ? AND tool = ? ORDER BY asked_at DESC", (run, tool))

    def find(self, attempt: str) -> Approval:
        """Return the question that is open of a run, by the beginning of an id of it.

        Raises:
            NotFound: There is none, or there are several that it may mean.
        """
        found = [
            each
            for each in self.pending()
            if attempt and (each.run.startswith(attempt) or each.attempt.startswith(attempt))
        ]
        if not found:
            raise NotFound(f"No run {attempt!r} waits for approval. `toolfold approve` lists them.")
        if len({each.run for each in found}) > 1:
            raise NotFound(f"Several runs that wait have an id that begins with {attempt!r}.")
        return found[-1]

    def find_open(self, attempt: str, question: str | None = None) -> Approval:
        """Return the open question of a run that is meant; by default the oldest that is open.

        Raises:
            NotFound: There is none. The message says what became of the one that is meant.
        """
        for approval in self.pending():
            if approval.attempt == attempt and question in {None, approval.id}:
                return approval
        closed = self.latest_of(attempt)
        if question is not None:
            closed = self._found("id = ? AND attempt = ?", (question, attempt))
        if closed is not None:
            self._check_open(closed, self._clock())
        raise NotFound(f"No run {attempt!r} waits for approval of this. `/approvals` lists them.")

    def latest_of(self, attempt: str) -> Approval | None:
        """Return the newest question that one attempt at a run asked, decided or not."""
        return self._found("attempt = ? ORDER BY asked_at DESC", (attempt,))

    def pending(self) -> list[Approval]:
        """Return all that are open, the oldest first."""
        rows = self._rows(
            f"SELECT {_COLUMNS}, seal FROM approvals WHERE state = 'pending' "  # noqa: S608
            "AND expires_at > ? ORDER BY asked_at",
            (self._clock(),),
        )
        return [approval for row in rows if (approval := self._read(row)) is not None]

    def allow_always(self, scope: str, tool: str, definition: str = "") -> None:
        """Let a tool be called from now on without asking, as long as its definition is this."""
        seal = self._seal([scope, tool, definition])
        values = (scope, tool, self._clock(), seal, definition)
        self._tables.write(lambda connection: connection.execute(_ALLOW, values))

    def is_always_allowed(self, scope: str, tool: str, definition: str = "") -> bool:
        """Whether the user has said so, of a tool with this definition.

        What was said without one is about that with which the tool is first used from then on.
        Where none is given, it is not compared.
        """
        rows = self._rows(
            "SELECT seal, definition FROM standing WHERE scope = ? AND tool = ?", (scope, tool)
        )
        if not rows or not hmac.compare_digest(rows[0][0], self._seal([scope, tool, rows[0][1]])):
            return False
        [(_, said)] = rows
        if definition and not said:
            self.allow_always(scope, tool, definition)
        return not definition or said in {"", definition}

    def always_allowed(self, namespace: str) -> list[tuple[str, str]]:
        """Return in which scopes of a namespace the user has said so, and of which tools."""
        rows = self._rows(
            f"SELECT scope, tool, definition, seal FROM standing WHERE {_WITHIN} "  # noqa: S608
            "ORDER BY scope, tool",
            _within(namespace),
        )
        return [
            (scope, tool)
            for scope, tool, definition, seal in rows
            if hmac.compare_digest(seal, self._seal([scope, tool, definition]))
        ]

    def ask_again(self, namespace: str, tool: str) -> bool:
        """Take that back, for keys too; return whether there was anything to take back."""
        statement = f"DELETE FROM standing WHERE {_WITHIN} AND tool = ?"  # noqa: S608
        values = (*_within(namespace), tool)
        return self._tables.write(
            lambda connection: connection.execute(statement, values).rowcount > 0
        )

    def _rows(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return self._tables.read(
            lambda connection: connection.execute(statement, values).fetchall()
        )

    def _found(self, where: str, values: tuple[Any, ...]) -> Approval | None:
        return self._tables.read(lambda connection: self._find(connection, where, values))

    def _find(
        self, connection: SqlTransaction, where: str, values: tuple[Any, ...]
    ) -> Approval | None:
        row = connection.execute(
            f"SELECT {_COLUMNS}, seal FROM approvals WHERE {where} LIMIT 1",  # noqa: S608
            values,
        ).fetchone()
        return None if row is None else self._read(row)

    def _read(self, row: tuple[Any, ...]) -> Approval | None:
        *values, seal = row
        if not hmac.compare_digest(seal, self._seal(values)):
            return None
        found = Approval(**dict(zip(_COLUMNS.split(", "), values, strict=True)))
        return _replaced(found, waits_alive=bool(found.waits_alive))

    def _write(self, connection: SqlTransaction, approval: Approval) -> None:
        values = [getattr(approval, name) for name in _COLUMNS.split(", ")]
        values = [int(value) if isinstance(value, bool) else value for value in values]
        connection.execute(_WRITE, (*values, self._seal(values)))

    def _seal(self, values: list[Any]) -> str:
        """Return the seal of a row. Its definition comes last; older rows have none."""
        values = values if values[-1] else values[:-1]
        text = json.dumps(values, ensure_ascii=False)
        key = read_key(self._key_file)
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _within(namespace: str) -> tuple[str, int, str]:
    prefix = f"{namespace} key:"
    return namespace, len(prefix), prefix


def _replaced(approval: Approval, **changes: Any) -> Approval:
    values = {name: getattr(approval, name) for name in Approval.__dataclass_fields__}
    return Approval(**(values | changes))


def approvals_of(config: Config) -> Approvals:
    """Return the approvals of a configuration."""
    return Approvals(
        config.directories.data,
        valid_s=config.settings.limits.approval_s,
        database_url=config.settings.database_url,
    )


async def keep_expiring(approvals: Approvals, journal: Journal) -> None:
    """Write down of runs that wait that nobody answered in time: they are denied then."""

    def note(approval: Approval) -> None:
        with suppress(NotFound):  # its rows are gone already
            journal.decide(approval.attempt, decided(approval, "expired", by="policy"))

    while True:
        with suppress(StoreError):  # tried again
            await anyio.to_thread.run_sync(approvals.expire, note)
        await anyio.sleep(_EXPIRY_S)


def scope_of(namespace: str, client: str) -> str:
    """Return in what a tool is allowed for good: a namespace, or what one key does in it."""
    return f"{namespace} {client}" if client.startswith("key:") else namespace


def decided(approval: Approval, action: DecidedAction, *, by: str) -> DecisionEvent:
    """Return what the journal is told of a decision."""
    return DecisionEvent(
        position=approval.position,
        tool=approval.tool,
        rule=approval.rule,
        action=action,
        by=by,
        arguments_sha256=approval.arguments_sha256,
    )
