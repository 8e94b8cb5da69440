"""approvals.db: what runs wait for, and what the user decided."""

import hashlib
import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from toolfold.config.config import Config
from toolfold.errors import NotFound, StoreError
from toolfold.journal.decisions import DecidedAction, DecisionEvent
from toolfold.storage.keyfile import read_key
from toolfold.storage.migrations import DatabaseSchema
from toolfold.storage.sqlite_file import open_for_writing

ApprovalState = Literal["pending", "approved", "rejected"]

_SCHEMA: Final = DatabaseSchema(
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
    ),
)
_COLUMNS: Final = (
    "id, run, attempt, project, client, tool, position, arguments, arguments_sha256, known, rule, "
    "made, waits_alive, asked_at, expires_at, state, most, decided_at, decided_by"
)
_SUPERSEDE: Final = """
    DELETE FROM approvals
    WHERE state = 'pending' AND run = ?1 AND (tool = ?2 OR attempt != ?3)
"""
"""A run has one open question about a tool, and none that an earlier attempt at it asked."""

_WITHIN: Final = "(scope = ?1 OR substr(scope, 1, length(?1) + 5) = ?1 || ' key:')"
_MAX_PENDING: Final = 1_000
_OLD_S: Final = 30 * 24 * 3600.0


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
        self, path: Path, *, valid_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._key_file = path.with_suffix(".key")
        self._valid_s = valid_s
        self._clock = clock

    def ask(self, wanted: ApprovalRequest) -> Approval:
        """Write down that a run waits for the user; it does so until the question expires.

        Raises:
            StoreError: The file does not take it, or too many wait.
        """
        now = self._clock()
        with self._opened() as connection:
            connection.execute("DELETE FROM approvals WHERE expires_at < ?", (now - _OLD_S,))
            connection.execute(_SUPERSEDE, (wanted.run, wanted.tool, wanted.attempt))
            (pending,) = connection.execute(
                "SELECT count(*) FROM approvals WHERE state = 'pending' AND expires_at > ?", (now,)
            ).fetchone()
            if pending >= _MAX_PENDING:
                raise StoreError(f"{_MAX_PENDING} runs wait for approval already.")
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
            self._write(connection, approval)
        return approval

    def decide(self, approval_id: str, state: ApprovalState, *, most: int, by: str) -> Approval:
        """Write down what the user decided about a question that is open.

        Raises:
            NotFound: There is none, or it was decided, or it has expired.
            StoreError: The file does not take it.
        """
        now = self._clock()
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            approval = self._find(connection, "id = ?", (approval_id,))
            if approval is None:
                raise NotFound(f"There is no question {approval_id!r}.")
            self._check_open(approval, now)
            decided = _replaced(
                approval, state=state, most=most, decided_at=now, decided_by=by,
                expires_at=now + self._valid_s,
            )  # fmt: skip
            self._write(connection, decided)
            connection.execute("COMMIT")
        return decided

    def _check_open(self, approval: Approval, now: float) -> None:
        if approval.state != "pending":
            raise NotFound(f"This was decided already: {approval.tool} is {approval.state}.")
        if approval.expires_at < now:
            raise NotFound(
                f"The question about {approval.tool} has expired. Nothing was done; run the code "
                "again to be asked again."
            )

    def latest(self, run: str, tool: str) -> Approval | None:
        """Return the newest question about a tool in a run that is sealed by us."""
        with self._opened() as connection:
            return self._find(
                connection, "run = ? AND tool = ? ORDER BY asked_at DESC", (run, tool)
            )

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

    def latest_of(self, attempt: str) -> Approval | None:
        """Return the newest question that one attempt at a run asked, decided or not."""
        with self._opened() as connection:
            return self._find(connection, "attempt = ? ORDER BY asked_at DESC", (attempt,))

    def pending(self) -> list[Approval]:
        """Return all that are open, the oldest first."""
        with self._opened() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, seal FROM approvals WHERE state = 'pending' "  # noqa: S608
                "AND expires_at > ? ORDER BY asked_at",
                (self._clock(),),
            ).fetchall()
        return [approval for row in rows if (approval := self._read(row)) is not None]

    def allow_always(self, scope: str, tool: str) -> None:
        """Let a tool be called from now on without asking."""
        seal = self._seal([scope, tool])
        with self._opened() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?)",
                (scope, tool, self._clock(), seal),
            )

    def is_always_allowed(self, scope: str, tool: str) -> bool:
        """Whether the user has said so."""
        with self._opened() as connection:
            row = connection.execute(
                "SELECT seal FROM standing WHERE scope = ? AND tool = ?", (scope, tool)
            ).fetchone()
        return row is not None and hmac.compare_digest(row[0], self._seal([scope, tool]))

    def always_allowed(self, namespace: str) -> list[tuple[str, str]]:
        """Return in which scopes of a namespace the user has said so, and of which tools."""
        with self._opened() as connection:
            rows = connection.execute(
                f"SELECT scope, tool, seal FROM standing WHERE {_WITHIN} ORDER BY scope, tool",  # noqa: S608
                (namespace,),
            ).fetchall()
        return [
            (scope, tool)
            for scope, tool, seal in rows
            if hmac.compare_digest(seal, self._seal([scope, tool]))
        ]

    def ask_again(self, namespace: str, tool: str) -> bool:
        """Take that back, for keys too; return whether there was anything to take back."""
        with self._opened() as connection:
            return (
                connection.execute(
                    f"DELETE FROM standing WHERE {_WITHIN} AND tool = ?2",  # noqa: S608
                    (namespace, tool),
                ).rowcount
                > 0
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(open_for_writing(self._path, _SCHEMA).connection) as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(f"The file of approvals {self._path}: {error}") from error

    def _find(
        self, connection: sqlite3.Connection, where: str, values: tuple[Any, ...]
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

    def _write(self, connection: sqlite3.Connection, approval: Approval) -> None:
        values = [getattr(approval, name) for name in _COLUMNS.split(", ")]
        values = [int(value) if isinstance(value, bool) else value for value in values]
        marks = ", ".join("?" * (len(values) + 1))
        connection.execute(
            f"INSERT OR REPLACE INTO approvals ({_COLUMNS}, seal) VALUES ({marks})",  # noqa: S608
            (*values, self._seal(values)),
        )

    def _seal(self, values: list[Any]) -> str:
        text = json.dumps(values, ensure_ascii=False)
        key = read_key(self._key_file)
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _replaced(approval: Approval, **changes: Any) -> Approval:
    values = {name: getattr(approval, name) for name in Approval.__dataclass_fields__}
    return Approval(**(values | changes))


def approvals_of(config: Config) -> Approvals:
    """Return the approvals of a configuration."""
    return Approvals(
        config.directories.data / "approvals.db", valid_s=config.settings.limits.approval_s
    )


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
