"""Requests of clients during which their user may be asked something.

A client of 2025-11-25 is asked by a request of ours while its own waits. One of 2026-07-28 gets its
request answered with the questions and a handle; the work waits here, and the same request with the
answers and the handle goes on with it. Nothing is done twice.
"""

import hashlib
import logging
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.request_state import authenticated_principal

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.entrypoints.mcp.elicitation import (
    ask_by_request,
    ask_within,
    can_ask,
    expired,
    is_modern,
    read_reply,
    wire_question,
)
from toolfold.entrypoints.mcp.progress import ProgressReporter
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution.calls import OnRunProgress

_log = logging.getLogger(__name__)

_MAX_TALKS: Final = 100
_MAX_ENDED: Final = 20
_MAX_QUESTIONS: Final = 16
_UNKNOWN: Final = (
    "No run waits for this answer. Either it was answered already, or the run has ended: by a "
    "restart, or because it timed out. Calls that had completed were not undone. "
    "Check the state before you run the code again."
)

ResultT = TypeVar("ResultT")
BrokeredWork = Callable[[Elicitor | None, OnRunProgress], Awaitable[ResultT]]
"""What a request asks for. It is given whom to ask, if anybody, and whom to tell of progress."""


class TaskHandle(Protocol):
    """What makes work a task of its client: when, and how it is known and ended then."""

    after_s: float

    async def named(self, work: "BrokeredRequest[Any]") -> str:
        """Return the id of the task, once it can be found by that."""
        ...

    async def stop(self) -> None:
        """End the work, also where it would outlast its client."""
        ...


class ElicitationBroker:
    """Attends to requests, and keeps what waits for the user in between."""

    def __init__(self, tasks: TaskGroup, *, ask_s: float) -> None:
        self._tasks = tasks
        self._ask_s = ask_s
        self._talks: dict[str, BrokeredRequest[Any]] = {}

    async def attend(
        self,
        context: Any,
        params: types.InputResponseRequestParams,
        work: BrokeredWork[ResultT],
        *,
        task: "TaskHandle | None" = None,
    ) -> "ResultT | types.InputRequiredResult | BrokeredRequest[ResultT]":
        """Do what a request asks for, or go on with what it answers questions of.

        Work that may be a `task` and is not over in time goes on, and is returned itself.

        Raises:
            NotFound: Nothing waits for these answers.
            ToolfoldError: What `work` raised.
        """
        if params.request_state is not None:
            brokered = self._resume(context, params)
        elif task is not None or (is_modern(context) and can_ask(context)):
            brokered = self.start(context, params, work, task=task)
        else:
            ask = None
            if can_ask(context):
                ask = ask_by_request(context, self._user(context), self._ask_s)
            async with ProgressReporter(context.session.report_progress) as progress:
                return await work(ask, progress.note)
        return await self._listen(context, brokered)

    def start(
        self,
        context: Any,
        params: types.RequestParams,
        work: BrokeredWork[ResultT],
        *,
        task: "TaskHandle | None" = None,
    ) -> "BrokeredRequest[ResultT]":
        """Begin what a request asks for, and return it at once."""
        user = self._user(context) if can_ask(context) else None
        brokered: BrokeredRequest[ResultT] = BrokeredRequest(context, params, user, self._ask_s)
        brokered.task = task
        self._tasks.start_soon(brokered.run, work)
        return brokered

    def _user(self, context: Any) -> object:
        """Return who is asked: over HTTP a desk serves many clients, and else one."""
        if context.request is None:
            return self
        return context.request.headers.get("mcp-session-id") or object()

    async def _listen(
        self, context: Any, brokered: "BrokeredRequest[ResultT]"
    ) -> "ResultT | types.InputRequiredResult | BrokeredRequest[ResultT]":
        """Wait for the end, or for questions, but no longer than until it is a task."""
        async with ProgressReporter(context.session.report_progress) as progress:
            brokered.on_progress = progress.note
            await brokered.news(math.inf if brokered.task is None else brokered.task.after_s)
            brokered.on_progress = _ignore
        if brokered.is_over:
            return brokered.result()
        if not brokered.requests:
            return brokered
        return types.InputRequiredResult(
            input_requests=dict(brokered.requests), request_state=self._keep(brokered)
        )

    def _keep(self, brokered: "BrokeredRequest[Any]") -> str:
        """Keep what waits under a handle that nobody can guess."""
        over = [handle for handle, each in self._talks.items() if each.is_over]
        for handle in over[: max(0, len(over) - _MAX_ENDED)]:
            del self._talks[handle]
        if len(self._talks) - len(over) >= _MAX_TALKS:
            brokered.cancel()
            raise NotFound(f"{_MAX_TALKS} runs wait for answers already; this one was ended.")
        handle = secrets.token_urlsafe(32)
        self._talks[handle] = brokered
        return handle

    def _resume(
        self, context: Any, params: types.InputResponseRequestParams
    ) -> "BrokeredRequest[Any]":
        """Take what waits for these answers; its handle is good for once."""
        handle = str(params.request_state)
        brokered = self._talks.get(handle)
        if brokered is None or brokered.origin != _origin(context, params):
            raise NotFound(_UNKNOWN)
        del self._talks[handle]
        brokered.take_replies(context, params.input_responses or {})
        return brokered


@asynccontextmanager
async def open_broker(ask_s: float) -> AsyncIterator[ElicitationBroker]:
    """Have a desk for the length of this context; what still waits at its end is ended with it."""
    async with anyio.create_task_group() as tasks:
        yield ElicitationBroker(tasks, ask_s=ask_s)
        tasks.cancel_scope.cancel()


class BrokeredRequest(Generic[ResultT]):
    """One piece of work that lasts over several requests of its client."""

    def __init__(
        self, context: Any, params: types.RequestParams, user: object | None, ask_s: float
    ) -> None:
        """`user` is None where nobody can be asked."""
        self.origin = _origin(context, params)
        self._user = user
        self.on_progress: OnRunProgress = _ignore
        self.task: TaskHandle | None = None
        """By what it is known once it is a task; None where it cannot be one."""
        self.latest_note = ""
        """What the work said of its progress last."""
        self._context = context
        self._ask_s = ask_s
        self._open: dict[str, _OpenQuestion] = {}
        self._asked = 0
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()
        self._news = anyio.Event()
        self._outcome: list[ResultT] = []
        self._error: Exception | None = None

    async def run(self, work: BrokeredWork[ResultT]) -> None:
        """Do the work. What it raises is raised by `result`."""
        try:
            with self._scope:
                ask = None if self._user is None else Elicitor(user=self._user, put=self._ask)
                self._outcome.append(await work(ask, self._note))
        except ToolfoldError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  # the loop of a background task
            _log.exception("a request that could ask its user failed")
            self._error = error
        finally:
            self._over.set()
            self._tell()

    def _note(self, done: float, total: float | None, note: str) -> None:
        self.latest_note = note
        self.on_progress(done, total, note)

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def cancel(self) -> None:
        """End the work."""
        self._scope.cancel()

    @property
    def is_over(self) -> bool:
        """Whether there is a result, or an error in its place."""
        return self._over.is_set()

    async def over(self) -> None:
        """Wait for the end."""
        await self._over.wait()

    @property
    def failure(self) -> Exception | None:
        """Why there is no result of work that is over; None where there is one."""
        if self._error is None and not self._outcome:
            return NotFound("The run was ended.")
        return self._error

    def result(self) -> ResultT:
        """Return what came of the work, which is over."""
        if self.failure is not None:
            raise self.failure
        return self._outcome[0]

    @property
    def requests(self) -> types.InputRequests:
        """What the user is asked now."""
        return {key: asked.request for key, asked in self._open.items()}

    async def news(self, seconds: float) -> None:
        """Wait for the end, or for questions, but no longer. Cancelling ends the work."""
        try:
            with anyio.move_on_after(seconds):
                while not self.is_over and not self._open:
                    await self._news.wait()
        except anyio.get_cancelled_exc_class():
            self.cancel()
            with anyio.CancelScope(shield=True):
                await self._over.wait()
            raise

    def take_replies(self, context: Any, replies: types.InputResponses) -> None:
        """Give each question its reply. One without is asked again."""
        self._context = context
        for key in [key for key in replies if key in self._open]:
            self._open.pop(key).answer(replies[key])

    async def put_questions(self, context: Any, meta: dict[str, Any]) -> None:
        """Wait for the end; ask the client meanwhile, by requests within its own."""
        async with anyio.create_task_group() as tasks:
            while not self.is_over:
                for key, asked in self._open.items():
                    if not asked.is_put:
                        asked.is_put = True
                        tasks.start_soon(self._put, context, key, asked, meta)
                await self._news.wait()
            tasks.cancel_scope.cancel()

    async def _put(
        self, context: Any, key: str, asked: "_OpenQuestion", meta: dict[str, Any]
    ) -> None:
        try:
            reply = await ask_within(context, asked.request, meta)
        except anyio.get_cancelled_exc_class():
            asked.is_put = False
            raise
        if self._open.pop(key, None) is not None:
            asked.answer(reply)

    async def _ask(self, question: Question) -> Reply:
        if len(self._open) >= _MAX_QUESTIONS:
            raise unanswerable(question, f"{_MAX_QUESTIONS} questions wait for answers already")
        asked = _OpenQuestion(wire_question(self._context, question))
        self._asked += 1
        key = f"question_{self._asked}"
        self._open[key] = asked
        self._tell()
        try:
            with anyio.move_on_after(self._ask_s):
                return read_reply(question, await asked.reply())
        finally:
            self._open.pop(key, None)
        raise expired(question, self._ask_s)


class _OpenQuestion:
    """One question that has no reply yet."""

    def __init__(self, request: types.ElicitRequest) -> None:
        self.request = request
        self.is_put = False
        self._answered = anyio.Event()
        self._reply: object = None

    def answer(self, reply: object) -> None:
        """Take the reply."""
        self._reply = reply
        self._answered.set()

    async def reply(self) -> object:
        """Wait for the reply."""
        await self._answered.wait()
        return self._reply


def client_name(context: Any) -> str:
    """Return what a client calls itself."""
    client = context.session.client_params
    return str(client.client_info.name) if client else ""


def _origin(context: Any, params: types.RequestParams) -> tuple[object, ...]:
    """Say who asks for what: an answer must come from there, and be to the same request."""
    client = context.session.client_params
    asked = params.model_copy(
        update={"input_responses": None, "request_state": None, "meta": None}
    ).model_dump_json()
    return (
        authenticated_principal(context),
        client and (client.client_info.name, client.client_info.version),
        context.method,
        hashlib.sha256(asked.encode()).digest(),
    )


def _ignore(_done: float, _total: float | None, _note: str) -> None:
    """Have nobody to tell."""
