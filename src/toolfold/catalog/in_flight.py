"""Requests under way at one server, and the questions that it asks the user meanwhile.

Servers up to 2025-11-25 ask by a request of their own, which does not name the call it is about.
Later ones answer the call with their questions and expect it again, with the answers.
"""

import json
from collections.abc import Awaitable
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, Final, cast

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolfold.catalog.questions import Elicitor, Question, Reply, refuse
from toolfold.catalog.sanitize import plain, plain_value
from toolfold.catalog.stdio import ProgramCalls
from toolfold.catalog.upstream_request import AnswerT, CallListener, UpstreamRequest, UpstreamTask
from toolfold.clocks import PausableClock
from toolfold.errors import QuestionRefused, ToolfoldError

_MAX_ROUNDS: Final = 10
_EMPTY_ROUND_S: Final = 0.05
_MAX_MESSAGE_CHARS: Final = 4_000
_MAX_SCHEMA_CHARS: Final = 64_000
_MAX_URL_CHARS: Final = 8_000
_MAX_NOTE_CHARS: Final = 200
_QUIET: Final = frozenset({"debug"})


class InFlightRequests:
    """The requests under way at one server, newest last."""

    def __init__(self, server: str, timeout_s: float, *, task_s: float) -> None:
        self._server = server
        self._timeout_s = timeout_s
        self._task_s = task_s
        self._requests: list[_InFlightRequest] = []

    async def exchange(
        self,
        client: Client,
        request: UpstreamRequest[AnswerT],
        ask: Elicitor | None,
        listener: CallListener | None = None,
        calls: ProgramCalls | None = None,
    ) -> AnswerT | UpstreamTask:
        """Send the request until it is answered with more than questions, and return the answer.

        Where it calls a tool, and there are `calls`, it goes past the SDK's session.

        Time in which a person is asked does not count. The server has its whole time again whenever
        it says how far it is, up to the time of a task.

        Raises:
            MCPError: The server answered with an error, was lost, or not in time.
            QuestionRefused: It asks what cannot be put to the user, or does not stop asking.
            QuestionExpired: Nobody answered.
        """
        responses: types.InputResponses | None = None
        state: str | None = None
        for _ in range(_MAX_ROUNDS):
            try:
                timeout_s = self._task_s if request.is_patient else self._timeout_s
                flight = _InFlightRequest(ask, timeout_s, listener, most_s=self._task_s)
                hear = flight.hear if listener else None
                if calls is not None and request.call is not None:
                    sending = calls.call(request.call, hear)
                else:
                    made = _as_task(client, request, request.make(responses, state))
                    sending = client.session.send_request(
                        made, request.kind, progress_callback=hear
                    )
                answer = await self._send(sending, flight)
            except MCPError as error:
                await self._open_pages(error, ask)
                continue
            if not isinstance(answer, types.InputRequiredResult):
                return cast("AnswerT | UpstreamTask", answer)
            responses, state = await self.replies(answer, ask), answer.request_state
        raise QuestionRefused(
            f"{self._server} asked for input {_MAX_ROUNDS} times in a row and was not content."
        )

    async def on_elicitation(
        self,
        context: ClientRequestContext,  # noqa: ARG002  # the SDK names it
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """Answer a question that came as a request of the server's own.

        It goes to the user of the call on whose stream it came, or of all calls under way if they
        have only one. A call whose question cannot be answered fails, whatever the server would
        have made of that.
        """
        if not self._requests:
            return _refusal("A question can be asked only while a call is under way.")
        flight = self._asked_about()
        if flight is None:
            return _refusal(
                "Several calls of different users are under way, and which of them this question "
                "is about cannot be told. Call again alone."
            )
        try:
            question = read_question(self._server, params)
            with flight.clock.paused(), anyio.CancelScope() as asking:
                flight.asking.append(asking)
                return _as_result(await (flight.ask or refuse)(question))
        except ToolfoldError as error:
            flight.fail(error)
            return _refusal(str(error))
        return _refusal("The call that this question is about has ended.")

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Pass on what the server writes to its log, to those whose call it is about."""
        flight = self._asked_about() if self._requests else None
        if flight is not None and params.level not in _QUIET:
            await flight.log(
                params.data if isinstance(params.data, str) else json.dumps(params.data)
            )

    def _asked_about(self) -> "_InFlightRequest | None":
        """Return the call that a question is about, or another with the same user; None if unknown.

        Over streamable HTTP, what comes on the stream of a request comes with its context.
        """
        flight = _on_the_way.get()
        if flight in self._requests:
            return flight
        users = {each.ask.user if each.ask else each for each in self._requests}
        return self._requests[-1] if len(users) == 1 else None

    async def _send(self, sending: Awaitable[Any], flight: "_InFlightRequest") -> Any:
        self._requests.append(flight)
        sent = _on_the_way.set(flight)
        try:
            with flight.scope:
                return await sending
        finally:
            _on_the_way.reset(sent)
            self._requests.remove(flight)
            flight.end()
        raise flight.failure or MCPError(types.REQUEST_TIMEOUT, "Request timed out")

    async def replies(
        self, questions: types.InputRequiredResult, ask: Elicitor | None
    ) -> types.InputResponses | None:
        """Put the questions to the user one after the other."""
        if not questions.input_requests:
            await anyio.sleep(_EMPTY_ROUND_S)
            return None
        replies: types.InputResponses = {}
        for key, request in questions.input_requests.items():
            if not isinstance(request, types.ElicitRequest):
                raise QuestionRefused(
                    f"{self._server} asks for {request.method}, which is not passed on: "
                    "only questions to the user are."
                )
            question = read_question(self._server, request.params)
            replies[key] = _as_result(await (ask or refuse)(question))
        return replies

    async def _open_pages(self, error: MCPError, ask: Elicitor | None) -> None:
        """Have the user open what an error says must be opened first, or raise the error."""
        if error.code != types.URL_ELICITATION_REQUIRED:
            raise error
        try:
            pages = types.ElicitationRequiredErrorData.model_validate(error.error.data).elicitations
        except ValidationError:
            raise error from None
        for page in pages:
            reply = await (ask or refuse)(read_question(self._server, page))
            if reply.action != "accept":
                raise error


class _InFlightRequest:
    """One request that waits for its answer."""

    def __init__(
        self,
        ask: Elicitor | None,
        timeout_s: float,
        listener: CallListener | None,
        *,
        most_s: float,
    ) -> None:
        self.ask = ask
        self.listener = listener
        self._held: ExitStack | None = None
        self._progress: tuple[float, float | None] = (0.0, None)
        self._last_at = anyio.current_time() + most_s
        self.clock = PausableClock(timeout_s)
        self.scope = anyio.CancelScope()
        self.clock.attach(self.scope)
        self.asking: list[anyio.CancelScope] = []
        self.failure: ToolfoldError | None = None

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """Take from the server that it is at work."""
        assert self.listener is not None  # noqa: S101
        self._progress = (progress, total)
        if anyio.current_time() < self._last_at:
            self.clock.restart()
            if self._held is None:
                self._held = ExitStack()
                self._held.enter_context(self.listener.held())
        await self.listener.hear(progress, total, plain(message or "")[:_MAX_NOTE_CHARS])

    async def log(self, line: str) -> None:
        """Take a line of the server's log, which says nothing of how far it is."""
        if self.listener is not None:
            await self.listener.hear(*self._progress, plain(line[:_MAX_NOTE_CHARS]))

    def fail(self, failure: ToolfoldError) -> None:
        """End the request with a failure of ours."""
        self.failure = failure
        self.scope.cancel()

    def end(self) -> None:
        """Withdraw what is being asked: nobody waits for the answer."""
        if self._held is not None:
            self._held.close()
        for asking in self.asking:
            asking.cancel()


def _as_task(
    client: Client, request: UpstreamRequest[Any], made: types.Request[Any, Any]
) -> types.Request[Any, Any]:
    """Return a call as one that shall be a task, where the client has to ask for that."""
    tasks = client.server_capabilities.tasks
    takes = bool(tasks and tasks.requests and tasks.requests.tools and tasks.requests.tools.call)
    is_asked_for = client.protocol_version not in MODERN_PROTOCOL_VERSIONS
    if request.may_be_task and takes and is_asked_for:
        made.params.task = types.TaskMetadata()
    return made


_on_the_way: ContextVar[_InFlightRequest | None] = ContextVar("_on_the_way", default=None)


def _refusal(message: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=message)


def read_question(asker: str, params: types.ElicitRequestParams) -> Question:
    """Take over a question from a server.

    Raises:
        QuestionRefused: It is larger than a person could answer.
    """
    message = plain(params.message[:_MAX_MESSAGE_CHARS])
    if isinstance(params, types.ElicitRequestURLParams):
        if len(params.url) > _MAX_URL_CHARS:
            raise QuestionRefused(f"{asker} asks the user to open a URL that is too long.")
        return Question(
            asker=asker,
            message=message,
            url=plain(params.url),
            elicitation_id=params.elicitation_id,
        )
    if len(json.dumps(params.requested_schema)) > _MAX_SCHEMA_CHARS:
        raise QuestionRefused(f"{asker} asks the user to fill in a form that is too large.")
    return Question(asker=asker, message=message, schema=plain_value(params.requested_schema))


def _as_result(reply: Reply) -> types.ElicitResult:
    """Return a reply as it goes back to the server."""
    return types.ElicitResult(action=reply.action, content=reply.content)
