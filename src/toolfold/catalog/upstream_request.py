"""Requests that we make of servers, each maybe more than once, and slots to wait for."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any, Final, Generic, TypeVar

import anyio
import mcp_types as types
from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter
from pydantic.alias_generators import to_camel

from toolfold.catalog.tool import ListedTool
from toolfold.jsontypes import JsonObject

AnswerT = TypeVar("AnswerT", bound=BaseModel)
MakeRequest = Callable[[types.InputResponses | None, str | None], types.Request[Any, Any]]
"""Makes a request, with the answers to what the server asked and the state that it sent along."""


class UpstreamTask(BaseModel):
    """A task as its server says that it stands, in the words of either protocol."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    task_id: str
    status: types.TaskStatus
    status_message: str | None = None
    poll_ms: float | None = Field(
        default=None, validation_alias=AliasChoices("pollIntervalMs", "pollInterval")
    )
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: types.InputRequests | None = None


def _kind_of_answer(answer: Any) -> str:
    if not isinstance(answer, dict):
        return "task" if isinstance(answer, UpstreamTask) else "result"
    return "task" if "taskId" in answer and not answer.get("content") else "result"


_RESULT: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult | UpstreamTask]] = (
    TypeAdapter(
        Annotated[
            Annotated[types.CallToolResult | types.InputRequiredResult, Tag("result")]
            | Annotated[UpstreamTask, Tag("task")],
            Discriminator(_kind_of_answer),
        ]
    )
)
_PROMPT: Final[TypeAdapter[types.GetPromptResult | types.InputRequiredResult]] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)
_CONTENTS: Final[TypeAdapter[types.ReadResourceResult | types.InputRequiredResult]] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)
_COMPLETION: Final[TypeAdapter[types.CompleteResult | types.InputRequiredResult]] = TypeAdapter(
    types.CompleteResult | types.InputRequiredResult
)
_NOTHING: Final[TypeAdapter[types.EmptyResult]] = TypeAdapter(types.EmptyResult)


@dataclass(frozen=True, slots=True)
class CallListener:
    """Hears of a request that takes long, while it is under way."""

    hear: Callable[[float, float | None, str], Awaitable[None]]
    """Told what the server says of its progress: how much is done, of how much, and a note."""
    held: Callable[[], AbstractContextManager[None]]
    """Entered while the server says that it is at work: the time that it takes does not count."""


_CALLED: Final[TypeAdapter[types.CallToolResult]] = TypeAdapter(types.CallToolResult)
_LATER: Final = frozenset({"resultType", "inputRequests", "requestState"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest(Generic[AnswerT]):
    """A request, and how it may be sent."""

    name: str
    """Of the tool, prompt or resource, for messages."""
    make: MakeRequest
    kind: TypeAdapter[Any]
    """Reads an answer, the questions in its place, or the task that will have it."""
    call: JsonObject | None = None
    """What is sent to call a tool, where that takes no more than this."""
    is_write: bool = False
    may_repeat: bool = True
    """Whether it may be sent again when it is not known whether it was done."""
    may_be_task: bool = False
    """Whether the server takes it as a task, if its protocol has the client ask for that."""
    is_patient: bool = False
    """Whether it waits for the end of a task, which has a time of its own."""


def calling(tool: ListedTool, arguments: JsonObject) -> UpstreamRequest[types.CallToolResult]:
    """Call a tool."""

    def make(responses: types.InputResponses | None, state: str | None) -> types.CallToolRequest:
        params = types.CallToolRequestParams(
            name=tool.name, arguments=arguments, input_responses=responses, request_state=state
        )
        return types.CallToolRequest(params=params)

    return UpstreamRequest(
        name=tool.name,
        make=make,
        kind=_RESULT,
        call={"name": tool.name, "arguments": arguments},
        is_write=not tool.read_only,
        may_repeat=tool.read_only or tool.idempotent,
        may_be_task=tool.may_be_task,
    )


def called(raw: Any) -> types.CallToolResult:
    """Return the answer of a server of 2025 to a call; what later ones say beside it means nothing.

    Raises:
        ValidationError: It is none.
    """
    if isinstance(raw, dict) and not _LATER.isdisjoint(raw):
        raw = {key: value for key, value in raw.items() if key not in _LATER}
    return _CALLED.validate_python(raw, by_name=False)


def prompting(
    name: str, arguments: dict[str, str] | None
) -> UpstreamRequest[types.GetPromptResult]:
    """Get a prompt filled in."""

    def make(responses: types.InputResponses | None, state: str | None) -> types.GetPromptRequest:
        params = types.GetPromptRequestParams(
            name=name, arguments=arguments, input_responses=responses, request_state=state
        )
        return types.GetPromptRequest(params=params)

    return UpstreamRequest(name=name, make=make, kind=_PROMPT)


def reading(uri: str) -> UpstreamRequest[types.ReadResourceResult]:
    """Read a resource."""

    def make(
        responses: types.InputResponses | None, state: str | None
    ) -> types.ReadResourceRequest:
        params = types.ReadResourceRequestParams(
            uri=uri, input_responses=responses, request_state=state
        )
        return types.ReadResourceRequest(params=params)

    return UpstreamRequest(name=uri, make=make, kind=_CONTENTS)


def subscribing(uri: str) -> UpstreamRequest[types.EmptyResult]:
    """Ask to be told when a resource changes."""
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    return UpstreamRequest(name=uri, make=lambda *_: request, kind=_NOTHING)


def unsubscribing(uri: str) -> UpstreamRequest[types.EmptyResult]:
    """Ask to be told no more."""
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    return UpstreamRequest(name=uri, make=lambda *_: request, kind=_NOTHING)


def completing(params: types.CompleteRequestParams) -> UpstreamRequest[types.CompleteResult]:
    """Ask what may complete an argument."""
    request = types.CompleteRequest(params=params)
    return UpstreamRequest(name=params.argument.name, make=lambda *_: request, kind=_COMPLETION)


class CallSlots:
    """The turns at one server."""

    def __init__(self, *, concurrency: int, serialize_writes: bool) -> None:
        # Not locks: a question of the server is heard by another task than the call's.
        self._places = anyio.Semaphore(concurrency, fast_acquire=True)
        self._writing = anyio.Semaphore(1, fast_acquire=True) if serialize_writes else None

    def take(self, *, is_write: bool) -> "CallSlot":
        """Return a turn to enter; writers wait for each other first."""
        return CallSlot(self._places, self._writing if is_write else None)


class CallSlot:
    """One call's turn, held for the length of its context."""

    def __init__(self, places: anyio.Semaphore, writing: anyio.Semaphore | None) -> None:
        self._places = places
        self._writing = writing
        self._is_held = False
        self._is_over = False
        self._pauses = 0

    async def __aenter__(self) -> "CallSlot":
        await self._acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._release()

    @asynccontextmanager
    async def yielded(self) -> AsyncIterator[None]:
        """Let others have their turns in this context, which lasts as long as a person thinks."""
        self._pauses += 1
        self._release()
        try:
            yield
        finally:
            self._pauses -= 1
        if not self._pauses and not self._is_over:
            await self._acquire()

    async def _acquire(self) -> None:
        if self._writing is not None:
            await acquired(self._writing)
        try:
            await acquired(self._places)
        except BaseException:
            if self._writing is not None:
                self._writing.release()
            raise
        self._is_held = True
        if self._is_over:  # the call ended while its question waited for the turn
            self._release()

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._places.release()
            if self._writing is not None:
                self._writing.release()


async def acquired(turn: anyio.Semaphore | anyio.Lock) -> None:
    """Acquire at once what is free: even the fast way of waiting looks through all scopes first."""
    try:
        turn.acquire_nowait()
    except anyio.WouldBlock:
        await turn.acquire()
