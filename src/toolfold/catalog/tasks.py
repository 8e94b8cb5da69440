"""Tasks of MCP: calls that a server answers with a handle first, and later with the result.

In 2025-11-25 the client asks for a task where a tool allows it, and `tasks/result` waits for its
end. With the extension of 2026-07-28 the server decides, and `tasks/get` brings the result along.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, Literal, Protocol

import anyio
import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from toolfold.catalog.upstream_request import CallListener, UpstreamRequest, UpstreamTask
from toolfold.errors import ToolFailed, ToolfoldError, UpstreamTimedOut

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""What the newer protocol calls tasks among what a client can do."""

_FIRST_POLL_S: Final = 0.1
_SHORTEST_POLL_S: Final = 0.05
_LONGEST_POLL_S: Final = 30.0
_OWN_LONGEST_POLL_S: Final = 5.0
_GROWTH: Final = 1.5
_CANCEL_S: Final = 1.0
_MAX_LOST_POLLS: Final = 3
_SHOWN_CHARS: Final = 300

_HANDLE: Final[TypeAdapter[UpstreamTask]] = TypeAdapter(UpstreamTask)
_CALLED: Final[TypeAdapter[types.CallToolResult]] = TypeAdapter(types.CallToolResult)
_ANY: Final[TypeAdapter[types.Result]] = TypeAdapter(types.Result)

Method = Literal["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"]


class Send(Protocol):
    """Makes a request of the server that has the task."""

    def __call__(self, request: UpstreamRequest[Any], /) -> Awaitable[Any]:
        """Return the answer. Raises an UpstreamError where there is none."""


class _TaskParams(types.RequestParams):
    task_id: str
    input_responses: types.InputResponses | None = None


class _TaskRequest(types.Request[_TaskParams, Method]):
    method: Method
    params: _TaskParams
    name_param = "taskId"


class RemoteTask:
    """One task of a server, until it has ended."""

    def __init__(
        self,
        handle: UpstreamTask,
        *,
        server: str,
        tool: str,
        send: Send,
        listener: CallListener | None,
        answer: Callable[[types.InputRequiredResult], Awaitable[types.InputResponses | None]],
    ) -> None:
        self._state = handle
        self._server = server
        self._tool = tool
        self._send = send
        self._listener = listener
        self._answer = answer
        self._answered: set[str] = set()

    async def result(self, *, is_modern: bool, limit_s: float) -> types.CallToolResult:
        """Wait for the end of the task; cancelling cancels it at the server too.

        Raises:
            ToolFailed: It failed, or was cancelled there.
            UpstreamTimedOut: It takes longer than that; it was cancelled.
            UpstreamError: The server is lost.
        """
        wait = self._polled if is_modern else self._awaited
        try:
            with self._held(), anyio.fail_after(limit_s):
                return await wait()
        except TimeoutError as error:
            await self._cancel()
            raise UpstreamTimedOut(
                f"{self._server}: the task of {self._tool} did not end within {limit_s:g} s "
                "(`limits.task_s`). It was cancelled."
            ) from error
        except (ToolfoldError, anyio.get_cancelled_exc_class()):
            await self._cancel()
            raise

    def _held(self) -> AbstractContextManager[None]:
        return self._listener.held() if self._listener else nullcontext()

    async def _polled(self) -> types.CallToolResult:
        """Ask how it stands, again and again, until it has ended."""
        polls = 0
        while self._is_open:
            await self._tell()
            if not await self._answer_questions():
                await anyio.sleep(self._pause_s(polls))
            polls += 1
            self._state = await self._get()
        return self._outcome()

    async def _awaited(self) -> types.CallToolResult:
        """Have the server answer when it has ended; how it stands is asked beside that."""
        result: types.CallToolResult | None = None
        lost: list[ToolfoldError] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, lost, tasks.cancel_scope)
            try:
                result = await self._send(self._request("tasks/result", _CALLED, is_patient=True))
            except ToolfoldError as error:
                lost.append(error)
            tasks.cancel_scope.cancel()
        if result is None:
            raise lost[0]
        return result

    async def _watch(self, lost: list[ToolfoldError], scope: anyio.CancelScope) -> None:
        """Pass on how it stands; end the wait when the server does not say so any more."""
        polls = failures = 0
        while self._is_open:
            await self._tell()
            await anyio.sleep(self._pause_s(polls))
            polls += 1
            try:
                self._state = await self._get()
                failures = 0
            except ToolfoldError as error:
                failures += 1
                if failures >= _MAX_LOST_POLLS:
                    lost.append(error)
                    scope.cancel()
                    return

    async def _get(self) -> UpstreamTask:
        state: UpstreamTask = await self._send(self._request("tasks/get", _HANDLE))
        return state

    @property
    def _is_open(self) -> bool:
        return self._state.status in {"working", "input_required"}

    async def _tell(self) -> None:
        if self._listener is not None and self._state.status_message:
            await self._listener.hear(0.0, None, self._state.status_message)

    async def _answer_questions(self) -> bool:
        """Put to the user what has not been put yet; return whether there was something."""
        asked = self._state.input_requests or {}
        fresh = {key: each for key, each in asked.items() if key not in self._answered}
        if not fresh:
            return False
        replies = await self._answer(types.InputRequiredResult(input_requests=fresh))
        self._answered |= fresh.keys()
        await self._send(self._request("tasks/update", _ANY, replies=replies))
        return True

    def _pause_s(self, polls: int) -> float:
        if self._state.poll_ms is not None:
            return min(max(self._state.poll_ms / 1000, _SHORTEST_POLL_S), _LONGEST_POLL_S)
        return min(_FIRST_POLL_S * _GROWTH ** min(polls, 20), _OWN_LONGEST_POLL_S)

    def _outcome(self) -> types.CallToolResult:
        state = self._state
        if state.status == "completed" and state.result is not None:
            try:
                return _CALLED.validate_python(state.result, by_name=False)
            except ValidationError as error:
                raise self._failed("answered with what is not valid MCP.") from error
        said = str((state.error or {}).get("message") or state.status_message or "")[:_SHOWN_CHARS]
        if state.status == "cancelled":
            raise self._failed(f"was cancelled there{': ' + said if said else '.'}")
        raise self._failed(f"failed: {said or 'it did not say why.'}")

    def _failed(self, how: str) -> ToolFailed:
        return ToolFailed(f"{self._server}: the task of {self._tool} {how}")

    async def _cancel(self) -> None:
        """Have the server stop, whatever becomes of us; it has a second to hear of it."""
        if not self._is_open:
            return
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CANCEL_S):
            try:
                await self._send(self._request("tasks/cancel", _ANY))
            except ToolfoldError:
                return  # it may have ended meanwhile, or cannot be cancelled

    def _request(
        self,
        method: Method,
        kind: TypeAdapter[Any],
        *,
        replies: types.InputResponses | None = None,
        is_patient: bool = False,
    ) -> UpstreamRequest[Any]:
        params = _TaskParams(task_id=self._state.task_id, input_responses=replies)
        make = partial(_TaskRequest, method=method, params=params)
        return UpstreamRequest(
            name=self._tool, make=lambda *_: make(), kind=kind, is_patient=is_patient
        )
