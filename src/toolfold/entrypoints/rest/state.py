"""How things are, for people and for programs that watch."""

from typing import Final

import anyio
from starlette.responses import Response

from toolfold import __version__
from toolfold.catalog.catalog import ServerStatus
from toolfold.entrypoints.rest.answers import HEADERS, JsonAnswer
from toolfold.entrypoints.rest.metrics import CONTENT_TYPE, Metrics
from toolfold.entrypoints.rest.operations import Operation, RestRequest, closed_object, whole_object
from toolfold.errors import StoreError
from toolfold.jsontypes import Json, JsonObject

_READY_S: Final = 5.0

_SERVER: Final = whole_object(
    {
        "name": {"type": "string"},
        "state": {"enum": ["known", "unknown", "failed"]},
        "tools": {"type": ["integer", "null"]},
        "fault": {"type": ["string", "null"]},
    }
)


def state_operations(metrics: Metrics) -> list[Operation]:
    """Return all of them."""

    async def answer_health(request: RestRequest, _arguments: JsonObject) -> Response:
        catalog = request.app.catalog
        text = metrics.text(len(catalog.tools), catalog.statuses())
        return Response(text, headers={**HEADERS, "content-type": CONTENT_TYPE})

    return [
        Operation(
            method="GET",
            path="/health",
            summary="Whether we serve, and how each server is.",
            tag="state",
            returns=closed_object(
                {
                    "status": {"type": "string"},
                    "version": {"type": "string"},
                    "servers": {"type": "array", "items": _SERVER},
                },
                required=("status", "version"),
            ),
            answer=_health,
        ),
        Operation(
            method="GET",
            path="/health/live",
            summary="Whether the process answers. Restart it if it does not.",
            tag="state",
            returns=closed_object({"status": {"type": "string"}}, required=("status",)),
            answer=_live,
        ),
        Operation(
            method="GET",
            path="/health/ready",
            summary="Whether requests may be sent here: 503 while memory does not answer, its "
            "tables are not up to date, or the process is about to end.",
            tag="state",
            returns=closed_object(
                {
                    "status": {"type": "string"},
                    "memory": {"type": "string"},
                    "servers": {"type": "array", "items": _SERVER},
                },
                required=("status", "memory"),
            ),
            answer=_ready,
        ),
        Operation(
            method="GET",
            path="/metrics",
            summary="Counts and times, as Prometheus reads them.",
            tag="state",
            returns={"type": "string"},
            media="text/plain",
            answer=answer_health,
        ),
    ]


async def _health(request: RestRequest, _arguments: JsonObject) -> Json:
    said: JsonObject = {"status": "ok", "version": __version__}
    if request.is_known:
        said["servers"] = [_state(status) for status in request.app.catalog.statuses()]
    return said


async def _live(_request: RestRequest, _arguments: JsonObject) -> Json:
    return {"status": "ok"}


async def _ready(request: RestRequest, _arguments: JsonObject) -> Response:
    """Say whether memory answers, for which its tables must be up to date.

    Servers do not count: where one fails, the others work, and so would they at another replica.
    """
    memory = await _memory_trouble(request)
    is_ready = not memory and not request.is_ending()
    status = "ready" if is_ready else "ending" if request.is_ending() else "not ready"
    said: JsonObject = {"status": status, "memory": "ok" if not memory else "does not answer"}
    if request.is_known:
        said["memory"] = memory or "ok"
        said["servers"] = [_state(each) for each in request.app.catalog.statuses()]
    return JsonAnswer(said, 200 if is_ready else 503)


async def _memory_trouble(request: RestRequest) -> str:
    """Return why memory does not answer; empty if it does, or is a file that nobody needed yet."""
    app = request.app
    try:
        with anyio.fail_after(_READY_S):
            await app.shared.memories.check()
    except TimeoutError:
        return f"It has not answered for {_READY_S:g} s."
    except StoreError as error:
        return str(error)
    return ""


def _state(status: ServerStatus) -> Json:
    """Say how a server is: `known` if its tools are, `unknown` until something needs them."""
    state = "failed" if status.fault else "unknown" if status.tools is None else "known"
    return {"name": status.name, "state": state, "tools": status.tools, "fault": status.fault}
