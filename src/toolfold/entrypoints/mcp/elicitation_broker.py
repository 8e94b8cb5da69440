"""Requests of clients during which their user may be asked something.

A client of 2025-11-25 is asked by a request of ours while its own waits. One of 2026-07-28 gets its
request answered with the questions and a handle; the work waits here, and the same request with the
answers and the handle goes on with it. Nothing is done twice.
"""

import hashlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.request_state import authenticated_principal

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.entrypoints.mcp.elicitation import (
    ask_by_request,
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
    "No run waits for this answer. Either it was answered already, or the run was ended: by a "
    "restart, or long ago because nobody answered. Calls that had completed were not undone. "
    "See what is there before you run the code again."
)

ResultT = TypeVar("ResultT")
BrokeredWork = Callable[[Elicitor | None, OnRunProgress], Awaitable[ResultT]]
"""What a request asks for. It is given whom to ask, if anybody, and whom to tell of progress."""


class ElicitationBroker:
    """Attends to requests, and keeps what waits for the user in between."""

    def __init__(self, tasks: TaskGroup, *, ask_s: float) -> None:
        self._tasks = tasks
        self._ask_s = ask_s
        self._talks: dict[str, _BrokeredRequest[Any]] = {}

    async def attend(
        self, context: Any, params: types.InputResponseRequestParams, work: BrokeredWork[ResultT]
    ) -> ResultT | types.InputRequiredResult:
        """Do what a request asks for, or go on with what it answers questions of.

        Raises:
            NotFound: Nothing waits for these answers.
            ToolfoldError: What `work` raised.
        """
        if params.request_state is not None:
            brokered = self._resume(context, params)
        elif is_modern(context) and can_ask(context):
            brokered = _BrokeredRequest(context, params, self._user(context), self._ask_s)
            self._tasks.start_soon(brokered.run, work)
        else:
            ask = None
            if can_ask(context):
                ask = ask_by_request(context, self._user(context), self._ask_s)
            async with ProgressReporter(context.session.report_progress) as progress:
                return await work(ask, progress.note)
        return await self._listen(context, brokered)

    def _user(self, context: Any) -> object:
        """Return who is asked: over HTTP a desk serves many clients, and else one."""
        if context.request is None:
            return self
        return context.request.headers.get("mcp-session-id") or object()

    async def _listen(
        self, context: Any, brokered: "_BrokeredRequest[ResultT]"
    ) -> ResultT | types.InputRequiredResult:
        """Wait for the end, or for questions."""
        async with ProgressReporter(context.session.report_progress) as progress:
            brokered.on_progress = progress.note
            await brokered.news()
            brokered.on_progress = _ignore
        if brokered.is_over:
            return brokered.result()
        return types.InputRequiredResult(
            input_requests=dict(brokered.requests), request_state=self._keep(brokered)
        )

    def _keep(self, brokered: "_BrokeredRequest[Any]") -> str:
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
    ) -> "_BrokeredRequest[Any]":
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


class _BrokeredRequest(Generic[ResultT]):
    """One piece of work that lasts over several requests of its client."""

    def __init__(
        self, context: Any, params: types.InputResponseRequestParams, user: object, ask_s: float
    ) -> None:
        self.origin = _origin(context, params)
        self._user = user
        self.on_progress: OnRunProgress = _ignore
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
                ask = Elicitor(user=self._user, put=self._ask)
                self._outcome.append(await work(ask, lambda *progress: self.on_progress(*progress)))
        except ToolfoldError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  # the loop of a background task
            _log.exception("a request that could ask its user failed")
            self._error = error
        finally:
            self._over.set()
            self._news.set()

    def cancel(self) -> None:
        """End the work."""
        self._scope.cancel()

    @property
    def is_over(self) -> bool:
        """Whether there is a result, or an error in its place."""
        return self._over.is_set()

    def result(self) -> ResultT:
        """Return what came of the work, which is over."""
        if self._error is not None:
            raise self._error
        if not self._outcome:
            raise NotFound("The run was ended.")
        return self._outcome[0]

    @property
    def requests(self) -> types.InputRequests:
        """What the user is asked now."""
        return {key: asked.request for key, asked in self._open.items()}

    async def news(self) -> None:
        """Wait for the end, or for questions. Cancelling ends the work."""
        try:
            while not self.is_over and not self._open:
                await self._news.wait()
                self._news = anyio.Event()
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

    async def _ask(self, question: Question) -> Reply:
        if len(self._open) >= _MAX_QUESTIONS:
            raise unanswerable(question, f"{_MAX_QUESTIONS} questions wait for answers already")
        asked = _OpenQuestion(wire_question(self._context, question))
        self._asked += 1
        key = f"question_{self._asked}"
        self._open[key] = asked
        self._news.set()
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


def _origin(context: Any, params: types.InputResponseRequestParams) -> tuple[object, ...]:
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
