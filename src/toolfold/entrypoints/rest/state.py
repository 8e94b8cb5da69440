"""How things are, for people and for programs that watch."""

from typing import Final

from starlette.responses import Response

from toolfold import __version__
from toolfold.catalog.catalog import ServerStatus
from toolfold.entrypoints.rest.answers import HEADERS
from toolfold.entrypoints.rest.metrics import CONTENT_TYPE, Metrics
from toolfold.entrypoints.rest.operations import Operation, RestRequest, closed_object, whole_object
from toolfold.jsontypes import Json, JsonObject

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


def _state(status: ServerStatus) -> Json:
    """Say how a server is: `known` if its tools are, `unknown` until something needs them."""
    state = "failed" if status.fault else "unknown" if status.tools is None else "known"
    return {"name": status.name, "state": state, "tools": status.tools, "fault": status.fault}
