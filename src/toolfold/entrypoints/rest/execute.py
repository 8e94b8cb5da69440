"""Run code, and tell of its progress to those who want to hear."""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Final

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.entrypoints.mcp.progress import ProgressReporter
from toolfold.entrypoints.rest.answers import HEADERS, INTERNAL, encode, failure_json
from toolfold.entrypoints.rest.disconnect import until_left
from toolfold.entrypoints.rest.operations import (
    EVENTS_TYPE,
    Operation,
    RestRequest,
    closed_object,
    whole_object,
)
from toolfold.entrypoints.rest.schemas import schema_of
from toolfold.errors import BadInput, Denied, ToolfoldError
from toolfold.execution.background import BackgroundRun
from toolfold.execution.calls import OnRunProgress
from toolfold.execution.report import RunFailure, RunReport, Times, ToolTally
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.service import RunOptions, RunRequest
from toolfold.execution.sessions.sessions import SESSION_NAME
from toolfold.jsontypes import Json, JsonObject, plain

_log = logging.getLogger(__name__)

_BEAT_S: Final = 15.0

_Beat = Callable[[], Awaitable[None]]


_TEXT: Final[JsonObject] = {"type": "string"}
RESULT: Final = whole_object(
    {
        "run_id": _TEXT,
        "session": _TEXT,
        "success": {"type": "boolean"},
        "text": {**_TEXT, "description": "What a model is to read."},
        "output": _TEXT,
        "value": {},
        "error": schema_of(RunFailure | None),
        "calls": {"type": "array", "items": schema_of(ToolTally)},
        "waits": {"type": "array", "items": _TEXT},
        "images": {
            "type": "array",
            "items": whole_object({"mime_type": _TEXT, "base64": _TEXT}),
        },
        "times": schema_of(Times),
    }
)
"""What is answered about a run."""

RUNNING: Final = whole_object({"run_id": _TEXT, "is_running": {"const": True}})
"""What is answered about one that goes on in the background."""


def run_operation() -> Operation:
    """Return it."""
    return Operation(
        method="POST",
        path="/execute",
        summary=(
            "Run Python with every tool at hand. Errors of the code are part of the answer. Those "
            f"who accept {EVENTS_TYPE} receive each call (`progress`), then the `result`."
        ),
        tag="execute",
        takes=closed_object(
            {
                "code": {"type": "string", "examples": ["1 + 1"]},
                "session": {
                    "type": "string",
                    "pattern": SESSION_NAME,
                    "description": "The session whose variables to use and keep.",
                },
                "dry_run": {
                    "type": "boolean",
                    "default": False,
                    "description": "Call only what reads, and list what would be called.",
                },
                "background": {
                    "type": "boolean",
                    "default": False,
                    "description": "Answer as soon as it has begun; `/runs/{id}` has its end.",
                },
                "ask": {
                    "type": "boolean",
                    "default": False,
                    "description": (
                        "Hear of what the user is asked as events (`question`), to be answered at "
                        "`/questions/{id}`. For the local user, who shows the token."
                    ),
                },
            },
            required=("code",),
        ),
        returns={"anyOf": [RESULT, RUNNING]},
        answer=_execute,
        stream=_RunStream,
    )


async def _execute(
    request: RestRequest,
    arguments: JsonObject,
    on_progress: OnRunProgress = lambda _done, _total, _note: None,
    ask: Elicitor | None = None,
) -> Json:
    if arguments.get("ask") and ask is None:
        raise BadInput(f"Questions come as events: ask for {EVENTS_TYPE} (Accept).")
    session = arguments.get("session")
    patience_s = 0 if arguments.get("background") else math.inf
    options = RunOptions(patience_s=patience_s, on_progress=on_progress, ask=ask)
    return outcome_json(
        await request.app.runs.run(
            RunRequest(
                code=str(arguments["code"]),
                origin=request.origin,
                session=SessionRequest(None if session is None else str(session)),
                dry_run=bool(arguments.get("dry_run")),
                options=options,
            )
        )
    )


def outcome_json(outcome: RunReport | BackgroundRun) -> Json:
    """Return what came of a run, or that it goes on."""
    if isinstance(outcome, BackgroundRun):
        return {"run_id": outcome.id, "is_running": True}
    return result_json(outcome)


def result_json(result: RunReport) -> Json:
    """Return what came of a run, as it is answered."""
    return {
        "run_id": result.run_id,
        "session": result.session,
        "success": result.success,
        "text": result.text,
        "output": result.output,
        "value": plain(result.value),
        "error": asdict(result.error) if result.error else None,
        "calls": [asdict(count) for count in result.calls],
        "waits": list(result.waits),
        "images": [{"mime_type": blob.mime_type, "base64": blob.base64} for blob in result.images],
        "times": asdict(result.times),
    }


class _RunStream(Response):
    """Runs the code while it is sent. A reader who leaves ends the run."""

    def __init__(self, request: RestRequest, arguments: JsonObject) -> None:
        super().__init__(headers=HEADERS, media_type=EVENTS_TYPE)
        del self.headers["content-length"]
        self._request = request
        self._arguments = arguments

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with until_left(receive), _beating(partial(_send_text, send, ": still running\n\n")):
            event, value = await self._outcome(send)
            await _send_event(send, event, value)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _outcome(self, send: Send) -> tuple[str, Json]:
        async def report_progress(done: float, total: float | None, note: str) -> None:
            await _send_event(send, "progress", {"calls": done, "total": total, "call": note})

        try:
            ask = self._elicitor(send) if self._arguments.get("ask") else None
            async with ProgressReporter(report_progress) as progress:
                run = _execute(self._request, self._arguments, progress.note, ask)
                return "result", await run
        except ToolfoldError as error:
            return "error", failure_json(error.code, str(error))
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("A run ended with an error.")
            return "error", failure_json("internal", INTERNAL)

    def _elicitor(self, send: Send) -> Elicitor:
        """Return what puts questions to who reads the events.

        Raises:
            Denied: That need not be the user.
        """
        if self._request.key or not self._request.has_token:
            raise Denied(
                "Only the local user can be asked, with the token that `toolfold keys token` "
                "prints: a program must not answer for its user."
            )
        app = self._request.app

        async def put(question: Question) -> Reply:
            async def show(question_id: str) -> None:
                await _send_event(send, "question", {"id": question_id, **asdict(question)})

            limit_s = app.config.settings.limits.ask_s
            return await app.shared.questions.put(question, show, limit_s=limit_s)

        return Elicitor(user="rest", put=put)


async def _send_event(send: Send, event: str, value: Any) -> None:
    await _send_text(send, f"event: {event}\ndata: {encode(value).decode()}\n\n")


async def _send_text(send: Send, text: str) -> None:
    message: Message = {"type": "http.response.body", "body": text.encode(), "more_body": True}
    await send(message)


@asynccontextmanager
async def _beating(beat: _Beat) -> AsyncIterator[None]:
    """Say now and then that we are there, so that nobody between us and the client gives up."""

    async def keep_beating() -> None:
        while True:
            await anyio.sleep(_BEAT_S)
            await beat()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_beating)
        yield
        tasks.cancel_scope.cancel()


def question_operation() -> Operation:
    """Return what answers a question that a run has put."""
    return Operation(
        method="POST",
        path="/questions/{id}",
        summary="Answer what a run asks, as its events say; for the local user alone.",
        tag="execute",
        takes=closed_object(
            {
                "id": {"type": "string", "minLength": 1},
                "action": {"enum": ["accept", "decline", "cancel"]},
                "content": {"type": "object", "description": "The form, as it was filled in."},
            },
            required=("id", "action"),
        ),
        returns=whole_object({"answered": _TEXT}),
        answer=_answer_question,
    )


async def _answer_question(request: RestRequest, arguments: JsonObject) -> Json:
    if request.key or not request.has_token:
        raise Denied(
            "Only the local user answers, with the token that `toolfold keys token` prints."
        )
    question_id, given = str(arguments["id"]), arguments.get("content")
    action: Any = arguments["action"]
    content: Any = given if isinstance(given, dict) else None
    request.app.shared.questions.reply(question_id, Reply(action=action, content=content))
    return {"answered": question_id}
