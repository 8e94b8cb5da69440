"""Questions and replies as they cross the wire to a client."""

import json
import secrets
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.errors import QuestionExpired

_MAX_REPLY_CHARS: Final = 64_000


def is_modern(context: Any) -> bool:
    """Whether the client is asked by the answer to its call, not by a request of ours."""
    return context.session.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(context: Any) -> bool:
    """Whether the client said that it can put questions to its user."""
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def wire_question(context: Any, question: Question) -> types.ElicitRequest:
    """Return a question as this client gets it, with the name of who asks in front.

    Raises:
        QuestionRefused: The client has no such questions, or the form is not one it could show.
    """
    modes = context.session.client_capabilities.elicitation
    message = f"{question.asker}: {question.message}"
    if question.url is not None:
        if modes.url is None:
            raise unanswerable(question, "this client cannot have its user open a page")
        request_id = question.elicitation_id or secrets.token_urlsafe(16)
        return types.ElicitRequest(
            params=types.ElicitRequestURLParams(
                message=message,
                url=question.url,
                elicitation_id=None if is_modern(context) else request_id,
            )
        )
    if modes.form is None and modes.url is not None:
        raise unanswerable(question, "this client cannot show forms")
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=message, requested_schema=question.schema or {"type": "object"}
        )
    )
    _check_form(context, question, request)
    return request


def _check_form(context: Any, question: Question, request: types.ElicitRequest) -> None:
    """Refuse a form that the protocol would not carry, before anything depends on it."""
    if not is_modern(context):
        return
    result = types.InputRequiredResult(input_requests={"form": request})
    wire = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    try:
        methods.serialize_server_result("tools/call", context.session.protocol_version, wire)
    except ValidationError as error:
        raise unanswerable(question, "its form is not one that clients can show") from error


def read_reply(question: Question, result: object) -> Reply:
    """Take over a reply.

    Raises:
        QuestionRefused: It is no reply to a question, or too large.
    """
    if not isinstance(result, types.ElicitResult):
        raise unanswerable(question, "the client's answer was not one to a question")
    if len(json.dumps(result.content)) > _MAX_REPLY_CHARS:
        raise unanswerable(question, f"the answer was longer than {_MAX_REPLY_CHARS:,} characters")
    return Reply(action=result.action, content=result.content)


def expired(question: Question, ask_s: float) -> QuestionExpired:
    """Say that nobody answered, and that this ended the run."""
    return QuestionExpired(
        f"No answer within {ask_s:g} s to the question of {question.asker}: "
        f"{question.message[:300]!r}. The run has ended."
    )


def ask_by_request(context: Any, user: object, ask_s: float) -> Elicitor:
    """Return how a client of the older protocol is asked: by a request while its own waits."""

    async def ask(question: Question) -> Reply:
        request = wire_question(context, question)
        try:
            result = await context.session.send_request(
                request,
                types.ElicitResult,
                request_read_timeout_seconds=ask_s,
                metadata=ServerMessageMetadata(related_request_id=context.request_id),
            )
        except MCPError as error:
            if error.code == types.REQUEST_TIMEOUT:
                raise expired(question, ask_s) from error
            raise unanswerable(question, f"the client refused to ask: {error.message}") from error
        except ValidationError as error:
            raise unanswerable(question, "the client's answer is not valid") from error
        return read_reply(question, result)

    return Elicitor(user=user, put=ask)


async def ask_within(context: Any, request: types.ElicitRequest, meta: dict[str, Any]) -> object:
    """Ask a client of the older protocol while a request of its own waits; None if it refuses."""
    known = request.params.meta or {}
    params = request.params.model_copy(update={"meta": {**known, **meta}})
    try:
        return await context.session.send_request(
            request.model_copy(update={"params": params}),
            types.ElicitResult,
            metadata=ServerMessageMetadata(related_request_id=context.request_id),
        )
    except (MCPError, ValidationError):
        return None
