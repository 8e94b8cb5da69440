"""Run code, and tell of its progress to those who want to hear."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Final

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

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
from toolfold.errors import ToolfoldError
from toolfold.execution.calls import OnRunProgress
from toolfold.execution.report import RunFailure, RunReport, Times, ToolTally
from toolfold.execution.runtime import SessionRequest
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


def run_operation() -> Operation:
    """Return it."""
    return Operation(
        method="POST",
        path="/execute",
        summary=(
            "Run Python with every tool at hand. What the code does wrong is in the answer. Those "
            f"who accept {EVENTS_TYPE} hear of each call (`progress`), then of the `result`."
        ),
        tag="execute",
        takes=closed_object(
            {
                "code": {"type": "string", "examples": ["1 + 1"]},
                "session": {
                    "type": "string",
                    "pattern": SESSION_NAME,
                    "description": "Whose variables to go on with, and to keep.",
                },
            },
            required=("code",),
        ),
        returns=RESULT,
        answer=_execute,
        stream=_RunStream,
    )


async def _execute(
    request: RestRequest,
    arguments: JsonObject,
    on_progress: OnRunProgress = lambda _done, _total, _note: None,
) -> Json:
    code, session = str(arguments["code"]), arguments.get("session")
    result = await request.app.runtime.run(
        code,
        origin=request.origin,
        session=SessionRequest(None if session is None else str(session)),
        on_progress=on_progress,
    )
    return result_json(result)


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
            async with ProgressReporter(report_progress) as progress:
                return "result", await _execute(self._request, self._arguments, progress.note)
        except ToolfoldError as error:
            return "error", failure_json(error.code, str(error))
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("A run ended with an error.")
            return "error", failure_json("internal", INTERNAL)


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
