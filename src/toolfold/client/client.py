"""Client: every tool, code and memory of a toolfold, over REST."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias

from toolfold.client.connection import RestConnection, failure_of
from toolfold.client.verbs import VerbMethods
from toolfold.errors import RequestFailed, ToolfoldError
from toolfold.jsontypes import Json, JsonObject, typed
from toolfold.memory.models import CompactEvent, CompactMemory, ExplainedMemory


class ToolLine(NamedTuple):
    """A tool in one line; `get_tool(name)` says how to call it."""

    name: str
    description: str
    category: str = ""


class Category(NamedTuple):
    """Tools that belong together."""

    description: str
    count: int  # type: ignore[assignment]  # hides the method of tuples
    tools: tuple[ToolLine, ...]
    """A few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What there is."""

    categories: dict[str, Category]
    total_tools: int
    next_offset: int | None


class ToolPage(NamedTuple):
    """Some of many tools."""

    tools: tuple[ToolLine, ...]
    total: int
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterInfo:
    """One parameter of a tool."""

    name: str
    type: str
    required: bool
    description: str = ""
    default: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """How to call a tool."""

    name: str
    category: str
    description: str
    call: str
    parameters: tuple[ParameterInfo, ...]
    takes_others: bool
    returns: str
    example: JsonObject
    read_only: bool
    destructive: bool
    idempotent: bool


class ToolCount(NamedTuple):
    """How often a run called a tool."""

    tool: str
    completed: int
    failed: int
    unknown: int


class RunFault(NamedTuple):
    """Why a run did not reach its end."""

    kind: str
    message: str
    line: int | None


class Image(NamedTuple):
    """An image that the code showed."""

    mime_type: str
    base64: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run. `text` is what a model is to read."""

    run_id: str
    success: bool
    text: str
    output: str
    value: Json
    error: RunFault | None
    calls: tuple[ToolCount, ...]
    waits: tuple[str, ...]
    images: tuple[Image, ...] = ()
    times: dict[str, float] = field(default_factory=dict)
    session: str = ""
    """Whose variables were kept, if any were."""


class RunLine(NamedTuple):
    """A run in one line."""

    id: str
    kind: str
    """`code`, `rehearsal` for a dry run, or what else was written down as one."""
    began_at: float
    client: str
    project: str
    code: str
    call_count: int
    state: str
    """`running`, `waiting`, `done`, `failed`, `invalid`, `denied`, `cancelled` or `lost`."""
    failure: str | None
    is_ended: bool
    took_s: float | None = None
    """Null until it has ended."""
    calling: tuple[str, ...] = ()
    """The tools whose calls are under way."""
    progress: JsonObject | None = None
    """How far it says it is: `done`, `total` and `note`."""


__all__ = ["DEFAULT_URL", "Client", "ToolfoldError"]

DEFAULT_URL: Final = "http://127.0.0.1:8765"

Moment: TypeAlias = datetime | float | str
Tags: TypeAlias = str | Sequence[str]
OnProgress: TypeAlias = Callable[[int, str], None]
"""Told of calls as they begin: how many there were, and which it is."""

_PAGE: Final = 100


class Client(VerbMethods):
    """Uses a toolfold that serves at `url`; a context, which closes the connection.

        with toolfold.Client() as client:
            print(client.discover_tools().categories)

    Other machines need a `key`. What is safe to repeat is tried again up to `retries` times.
    Every method raises a `toolfold.ToolfoldError`; `toolfold.errors` has its kinds: `NotFound`,
    `BadInput`, `ToolFailed` as they were raised there, `RequestFailed` where there is no answer.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        timeout_s: float = 330.0,
        retries: int = 3,
    ) -> None:
        self._door = RestConnection(url, key=key, timeout_s=timeout_s, retries=retries)

    def __enter__(self) -> "Client":
        """Open nothing yet: the first request does."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._door.close()

    def health(self) -> dict[str, Any]:
        """Return how the door and the servers behind it are."""
        answer: dict[str, Any] = self._get("health")
        return answer

    def discover_tools(self, *, limit: int | None = None, offset: int | None = None) -> Discovery:
        """Return every category, with a few of its tools, in few tokens."""
        return typed(Discovery, self._get("tools", "discover", limit=limit, offset=offset))

    def list_tools(
        self,
        category: str | None = None,
        *,
        query: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> ToolPage:
        """Return tools, of a category or all; with a query those that fit it, best first."""
        given = {"category": category, "query": query, "limit": limit, "offset": offset}
        return typed(ToolPage, self._get("tools", "list", **given))

    def iter_tools(
        self, category: str | None = None, *, query: str | None = None
    ) -> Iterator[ToolLine]:
        """Give all of them, page by page."""
        offset: int | None = 0
        while offset is not None:
            page = self.list_tools(category, query=query, limit=_PAGE, offset=offset)
            yield from page.tools
            offset = page.next_offset

    def get_tool(self, name: str) -> ToolInfo:
        """Return how to call a tool."""
        return typed(ToolInfo, self._get("tools", name))

    def call_tool(self, name: str, arguments: Mapping[str, Json] | None = None) -> Json:
        """Call a tool, and return its result. It is never called twice."""
        body = {"arguments": dict(arguments or {})}
        result: Json = self._post("tools", name, "execute", body=body)["result"]
        return result

    def execute(
        self,
        code: str,
        *,
        session: str | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> RunResult:
        """Run Python with every tool at hand. What the code does wrong is in the result.

        With `session` it goes on with the variables of that name, and keeps them. With `dry_run`
        only what reads is called, and the result lists the rest. With `on_progress` calls are told
        of as they begin.
        """
        body = _run_body(code, session, dry_run=dry_run)
        if on_progress is None:
            return typed(RunResult, self._post("execute", body=body))
        ends: dict[str, Any] = {}

        def take_event(event: str, value: Any) -> None:
            if event == "progress":
                on_progress(value["calls"], value["call"])
            else:
                ends[event] = value

        self._door.listen("execute", body=body, on_event=take_event)
        if "error" in ends:
            raise failure_of(**ends["error"]["error"])
        if "result" not in ends:
            raise RequestFailed("The stream ended before the run did; `iter_runs` may know it.")
        return typed(RunResult, ends["result"])

    def start(self, code: str, *, session: str | None = None, dry_run: bool = False) -> str:
        """Begin to run Python in the background; return its id; `iter_runs` tells of its end."""
        body = {**_run_body(code, session, dry_run=dry_run), "background": True}
        run_id: str = self._post("execute", body=body)["run_id"]
        return run_id

    def remember(
        self,
        content: str,
        tags: Tags | None = None,
        memory_type: str = "note",
        *,
        importance: float | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> str:
        """Remember something, and return its hash; the same content again is the same note."""
        body = {
            "content": content,
            "tags": tags if tags is None or isinstance(tags, str) else list(tags),
            "memory_type": memory_type,
            "quality": importance,
            "metadata": None if metadata is None else dict(metadata),
        }
        return str(self._post("memory", "notes", body=body, may_repeat=True)["hash"])

    def forget(self, memory_id: str) -> bool:
        """Delete a note so that it can be restored; tell whether it was there."""
        return bool(
            self._door.ask("DELETE", "memory", "notes", memory_id, may_repeat=False)["deleted"]
        )

    def iter_memories(
        self,
        tags: Tags | None = None,
        *,
        memory_type: str | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
    ) -> Iterator[CompactMemory | ExplainedMemory]:
        """Give all notes that pass the filters, newest first, page by page."""
        given = {"tags": tags, "memory_type": memory_type, "after": after, "before": before}
        offset: int | None = 0
        while offset is not None:
            page = self._get("memory", "notes", limit=_PAGE, offset=offset, **given)
            yield from typed(tuple[CompactMemory, ...], page["memories"])
            offset = page["next_offset"]

    def iter_events(
        self, *, session_id: str | None = None, event_type: str | None = None
    ) -> Iterator[CompactEvent]:
        """Give all events, newest first, page by page."""
        until: float | None = None
        seen: set[str] = set()
        size = _PAGE
        while True:
            page = self.recall_events(
                session_id=session_id, event_type=event_type, until=until, limit=size
            ).events
            fresh = [event for event in page if event.id not in seen]
            yield from fresh
            if len(page) < size:
                return
            # The last moment is asked for again: several events may share it.
            until = math.nextafter(page[-1].at, math.inf)
            seen = {event.id for event in page if event.at == page[-1].at}
            size = min(1_000, max(_PAGE, 2 * len(seen)))

    def iter_runs(self) -> Iterator[RunLine]:
        """Give all runs that you may see, newest first, page by page."""
        before: str | None = None
        while True:
            page = self._get("runs", limit=_PAGE, before=before)
            yield from typed(tuple[RunLine, ...], page["runs"])
            before = page["next_before"]
            if before is None:
                return

    def _get(self, *path: str, **query: object) -> Any:
        return self._door.ask("GET", *path, query=query, may_repeat=True)

    def _post(self, *path: str, body: Mapping[str, object], may_repeat: bool = False) -> Any:
        return self._door.ask("POST", *path, body=body, may_repeat=may_repeat)


def _run_body(code: str, session: str | None, *, dry_run: bool) -> dict[str, Json]:
    named: dict[str, Json] = {} if session is None else {"session": session}
    return {"code": code, **named, "dry_run": dry_run}
