"""What the journal knows of runs, and how each stands. Nothing heavy is imported."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, get_args

from toolfold.catalog.tool import DefinitionText
from toolfold.config.processes import is_alive
from toolfold.errors import NotFound
from toolfold.storage.tables import SqlTransaction

CallOutcome = Literal["ok", "failed", "unknown"]
RunKind = Literal["code", "rehearsal", "direct", "request", "hook", "reveal", "gap"]
"""What a run was: guest code; a dry run of that; a pinned tool, called by the model itself; a tool,
called by a program; notes that a hook put before the model; personal data shown to the user; what
could not be written."""

TERMINAL: Final = "cli"
"""The client of runs that a person at a terminal asks for."""

DASHBOARD: Final = "dashboard"
"""The client of what pages read for a person who looks: no run of an agent, though written down."""

WRITTEN: Final[frozenset[RunKind]] = frozenset({"code", "rehearsal"})
"""The kinds whose code the model wrote."""

CALLS_BITS: Final = 32
"""A call's key is the number of its run, shifted by this, and its own place in the run."""

_SHOWN_CANDIDATES: Final = 5
_RUN: Final = """
    SELECT number, id, began_at, client, request, project, process, kind, code, code_bytes,
        session, generation, resumes, progress.done, progress.total, progress.note,
        ended_at, failure, reply, reply_bytes,
        (SELECT count(*) FROM calls
            WHERE calls.id BETWEEN number << 32 AND (number + 1 << 32) - 1) AS call_count,
        CASE WHEN ended_at IS NULL OR failure IN ('approval', 'rejected') THEN
            (SELECT action FROM decisions
                WHERE decisions.id BETWEEN number << 32 AND (number + 1 << 32) - 1
                    AND action <> 'allow'
                ORDER BY decisions.id DESC LIMIT 1) END AS decision
    FROM beginnings LEFT JOIN ends USING (number) LEFT JOIN progress USING (number)
"""
_CONDITIONS: Final = {
    "client": "client || '' = ?",  # without an index: few of the newest are wanted, in their order
    "before": "number < (SELECT number FROM beginnings WHERE id = ?)",
    "since": "began_at >= ?",
    "text": "(? = '' OR replace(lower(code), lower(?), '') <> lower(code))",
    "tool": """EXISTS (SELECT 1 FROM calls
        WHERE calls.id BETWEEN number << 32 AND (number + 1 << 32) - 1
            AND substr(calls.tool || '.', 1, length(?) + 1) = ? || '.')""",
}
_OUTCOMES: Final = {
    "open": "ended_at IS NULL",
    "ok": "ended_at IS NOT NULL AND failure IS NULL",
    "failed": "ended_at IS NOT NULL AND failure IS NOT NULL",
}
_BEGINNING_WITH: Final = """
    SELECT number FROM beginnings WHERE id >= ? AND id < ? ORDER BY number DESC LIMIT ?
"""
_OF_CLIENT: Final = """
    SELECT number FROM beginnings
    WHERE id >= ? AND id < ? AND client = ? ORDER BY number DESC LIMIT ?
"""
_LAST_CHARACTER: Final = "\U0010ffff"
_UNFINISHED: Final = """
    WHERE client = ? AND ended_at IS NULL AND process = (
        SELECT process FROM beginnings WHERE client = ? ORDER BY number DESC LIMIT 1)
"""
_CALLS: Final = """
    SELECT id, tool, outcome, arguments, arguments_bytes, answer, answer_bytes, error,
        started_at, duration_s
    FROM calls WHERE id BETWEEN ? AND ? ORDER BY id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who asked for a run."""

    client: str = ""
    """The id of a relay, or the door: `cli`, `http`."""

    request: str = ""
    """The client's own id of the request."""

    project: str = ""
    program: str = field(default="", compare=False)
    """What its client calls itself: `claude-code`."""
    is_local_client: bool = field(default=False, compare=False)
    """Whether an agent on this machine asked over stdio: its user decides about its tools there."""
    shown: DefinitionText | None = field(default=None, compare=False)
    """The definitions of ours that the model saw."""
    tool_use: str = field(default="", compare=False)
    """The client's own id of the call, by which its hook knew of it before."""

    @property
    def has_key(self) -> bool:
        """Whether the holder of an API key asked for it."""
        return self.client.startswith("key:")


class RunStart(NamedTuple):
    """With what a run begins."""

    session: str = ""
    generation: str = ""
    """Which variables that session had."""
    resumes: str = ""
    """The id of the run that it goes on with."""


ANYWHERE: Final = RunStart()

RESUMABLE: Final = frozenset({"approval", "cancelled", "crash", "timeout"})
"""How runs may have ended that can be resumed, beside those that have no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run has said to be."""

    done: float
    total: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text as it was kept: whole, or only its head when it was too long."""

    head: str
    size_bytes: int
    """Of the whole text, in UTF-8."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was cut off."""
        return len(self.head.encode()) == self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool that ended."""

    position: int
    """From 1, in the order in which the calls of the run began."""

    tool: str
    outcome: CallOutcome
    """`unknown` if it was given up while the tool worked: it may have happened."""

    arguments: Text
    answer: Text | None
    """JSON, if the tool gave an answer."""

    error: str | None
    started_at: float
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    """How a run ended."""

    at: float
    failure: str | None
    """The kind of failure, None if there was none."""

    reply: Text
    """What the model read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. Without an ending it was lost with its process, unless that still works on it."""

    id: str
    origin: Origin
    process: int
    """The identity of the process that ran it; rows of earlier versions have its id."""

    kind: RunKind
    start: RunStart = ANYWHERE

    code: Text
    began_at: float
    ending: RunEnding | None
    call_count: int
    progress: RunProgress | None = None
    calls: tuple[Call, ...] = ()
    """In the order in which they began; empty where runs are listed."""

    decision: str = ""
    """What was last decided about a call of it, if that says how it stands."""
    latest: "Run | None" = None
    """The newest of the runs that went on with it once it was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted; what is None does not matter."""

    client: str | None = None
    before: str | None = None
    """The id of a run; only older ones, and none if it is gone, as then all older ones are."""

    since: float | None = None
    text: str | None = None
    """A part of the program, upper or lower case."""

    tool: str | None = None
    """`server.tool`, or `server` for any of its tools."""

    outcome: Literal["ok", "failed", "open"] | None = None


ANY_RUN: Final = RunFilter()


def newest(connection: SqlTransaction, limit: int, wanted: RunFilter = ANY_RUN) -> list[Run]:
    """Return the newest runs that are wanted, without their calls, newest first."""
    wishes = asdict(wanted)
    conditions, values = [f"client <> '{DASHBOARD}'"], []
    for name, sql in _CONDITIONS.items():
        if wishes[name] is not None:
            conditions.append(sql)
            values += [wishes[name]] * sql.count("?")
    if wanted.outcome is not None:
        conditions.append(_OUTCOMES[wanted.outcome])
    rows = connection.execute(
        f"{_RUN} WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?", (*values, limit)
    )
    return [_with_latest(connection, _run(row)) for row in rows.fetchall()]


def find(connection: SqlTransaction, prefix: str, *, client: str | None = None) -> Run:
    """Return the run whose id begins with `prefix`, with its calls.

    Only those of `client` count, if it is given.

    Raises:
        NotFound: There is none, or there are several, which the message then names.
    """
    with_prefix = _BEGINNING_WITH if client is None else _OF_CLIENT
    clients = () if client is None else (client,)
    rows = connection.execute(
        f"{_RUN} WHERE number IN ({with_prefix}) ORDER BY number DESC",
        (prefix, prefix + _LAST_CHARACTER, *clients, _SHOWN_CANDIDATES + 1),
    ).fetchall()
    if len(rows) == 1:
        return _whole(connection, rows[0])
    if not rows:
        raise NotFound(f"No run has an id that begins with {prefix!r}. `toolfold runs` lists them.")
    more = ", and more" if len(rows) > _SHOWN_CANDIDATES else ""
    names = ", ".join(row[1] for row in rows[:_SHOWN_CANDIDATES])
    raise NotFound(f"Several runs have an id that begins with {prefix!r}: {names}{more}.")


def find_following(connection: SqlTransaction, run_id: str) -> Run:
    """Return the newest of the runs that went on with a run, or that itself.

    Raises:
        NotFound: There is no such run.
    """
    return find(connection, _following_id(connection, run_id))


def _following_id(connection: SqlTransaction, run_id: str) -> str:
    while row := connection.execute(
        "SELECT id FROM beginnings WHERE resumes = ? ORDER BY number DESC LIMIT 1", (run_id,)
    ).fetchone():
        run_id = row[0]
    return run_id


def find_latest(connection: SqlTransaction, client: str, request: str) -> Run | None:
    """Return the newest run of that origin with its calls, whether it ended or not."""
    row = connection.execute(
        f"{_RUN} WHERE client = ? AND request = ? ORDER BY number DESC LIMIT 1", (client, request)
    ).fetchone()
    return None if row is None else _whole(connection, row)


def find_unfinished(connection: SqlTransaction, client: str, most: int) -> list[Run]:
    """Return runs of a client that have no end, with their calls, newest first.

    Only those of the process that ran the last one: of what was lost before, it was told then.
    """
    rows = connection.execute(
        f"{_RUN} {_UNFINISHED} ORDER BY number DESC LIMIT ?", (client, client, most)
    )
    return [_whole(connection, row) for row in rows.fetchall()]


def number_of(connection: SqlTransaction, run_id: str) -> int | None:
    """Return the number of the run of that id; None if there is none."""
    found = connection.execute("SELECT number FROM beginnings WHERE id = ?", (run_id,)).fetchone()
    return None if found is None else int(found[0])


def _run(row: Sequence[Any], calls: tuple[Call, ...] = ()) -> Run:
    _, run_id, began_at, client, request, project, process, kind, code, code_bytes, *rest = row
    session, generation, resumes, done, total, note, *ending = rest
    ended_at, failure, reply, reply_bytes, call_count, decision = ending
    return Run(
        id=run_id,
        origin=Origin(client=client, request=request, project=project),
        process=process,
        kind=kind,
        start=RunStart(session, generation, resumes),
        code=Text(head=code, size_bytes=code_bytes),
        began_at=began_at,
        ending=None
        if ended_at is None
        else RunEnding(
            at=ended_at, failure=failure, reply=Text(head=reply, size_bytes=reply_bytes)
        ),
        call_count=call_count,
        progress=None if done is None else RunProgress(done=done, total=total, note=note),
        calls=calls,
        decision=decision or "",
    )


def _with_latest(connection: SqlTransaction, run: Run) -> Run:
    if run.ending is not None and run.ending.failure != "approval":
        return run
    latest = _following_id(connection, run.id)
    return run if latest == run.id else replace(run, latest=find(connection, latest))


def _whole(connection: SqlTransaction, row: Sequence[Any]) -> Run:
    first = row[0] << CALLS_BITS
    last = first + (1 << CALLS_BITS) - 1
    calls = tuple(_call(each) for each in connection.execute(_CALLS, (first, last)))
    return _with_latest(connection, _run(row, calls))


def _call(row: Sequence[Any]) -> Call:
    key, tool, outcome, arguments, arguments_bytes, answer, answer_bytes, error, *times = row
    return Call(
        position=key & ((1 << CALLS_BITS) - 1),
        tool=tool,
        outcome=outcome,
        arguments=Text(head=arguments, size_bytes=arguments_bytes),
        answer=None if answer is None else Text(head=answer, size_bytes=answer_bytes),
        error=error,
        started_at=times[0],
        duration_s=times[1],
    )


State = Literal["running", "waiting", "done", "failed", "invalid", "denied", "cancelled", "lost"]
"""running: under way. waiting: paused until you approve a call. done, failed: it ended. invalid:
the check refused the code, and nothing ran. denied: you rejected a call, or did not answer in
time. cancelled: it was stopped. lost: its process died."""

STATES: Final[tuple[State, ...]] = get_args(State)


def state_of(run: Run, *, is_under_way: bool | None = None) -> State:
    """Return the state of a run; where another went on with it, the state of that one.

    `is_under_way` is for a caller that knows; otherwise its process is looked for.
    """
    if run.ending is None:
        return _state_without_end(run, is_under_way)
    match run.ending.failure:
        case None:
            return "done"
        case "approval" if run.latest is not None:
            return state_of(run.latest)
        case "approval" | "rejected" if run.decision in {"rejected", "expired"}:
            return "denied"
        case "approval":
            return "waiting"
        case "rejected":
            return "invalid"
        case "cancelled":
            return "cancelled"
    return "failed"


def _state_without_end(run: Run, is_under_way: bool | None) -> State:
    if is_under_way is None:
        is_under_way = is_alive(run.process, run.began_at)
    if not is_under_way:
        return "lost" if run.latest is None else state_of(run.latest)
    return "waiting" if run.decision == "ask" else "running"


def call_text(name: str, arguments: str) -> str:
    """Return a call as a model writes it; the arguments are JSON already."""
    return f'{{"name":{compact(name)},"arguments":{arguments}}}'


def code_text(code: str) -> str:
    """Return the call that runs code."""
    return call_text("execute_code", compact({"code": code}))


def tool_text(path: str, arguments: str) -> str:
    """Return the direct call of the tool at a path."""
    return call_text(path.partition(".")[2] or path, arguments)


def answer_text(answer: str) -> str:
    """Return an answer as a model reads it: JSON as it is, a text without its quotes."""
    if not answer.startswith('"'):
        return answer
    try:
        return str(json.loads(answer))
    except ValueError:
        return answer  # only its head was kept


def compact(value: object) -> str:
    """Return JSON without a blank too many."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
