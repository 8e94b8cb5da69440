"""Sessions: list, show, reset and copy them."""

from dataclasses import asdict
from typing import Final

import anyio.to_thread

from toolfold.entrypoints.rest.operations import Operation, RestRequest, closed_object, whole_object
from toolfold.execution.sessions.bindings import SessionInfo
from toolfold.execution.sessions.sessions import SESSION_NAME
from toolfold.jsontypes import Json, JsonObject

_TEXT: Final[JsonObject] = {"type": "string"}
_NAME: Final[JsonObject] = {"type": "string", "pattern": SESSION_NAME}
_SESSION: Final = whole_object(
    {
        "name": _TEXT,
        "tier": _TEXT,
        "created_at": {"type": "number"},
        "used_at": {"type": "number"},
        "runs": {"type": "integer"},
        "size_bytes": {"type": "integer"},
        "names": {"type": "array", "items": _TEXT},
    }
)


def session_operations() -> list[Operation]:
    """Return all of them."""
    named = closed_object({"name": _NAME}, required=("name",))
    return [
        Operation(
            method="GET",
            path="/sessions",
            summary="The sessions kept here, last used first.",
            tag="sessions",
            returns=whole_object({"sessions": {"type": "array", "items": _SESSION}}),
            answer=_list,
        ),
        Operation(
            method="GET",
            path="/sessions/{name}",
            summary="One session, with the names in it.",
            tag="sessions",
            takes=named,
            returns=_SESSION,
            answer=_show,
        ),
        Operation(
            method="DELETE",
            path="/sessions/{name}",
            summary="Forget the variables of a session.",
            tag="sessions",
            takes=named,
            returns=whole_object({"reset": _TEXT}),
            answer=_reset,
        ),
        Operation(
            method="POST",
            path="/sessions/{name}/fork",
            summary="Copy a session under another name.",
            tag="sessions",
            takes=closed_object({"name": _NAME, "copy": _NAME}, required=("name", "copy")),
            returns=_SESSION,
            answer=_fork,
        ),
    ]


async def _list(request: RestRequest, _arguments: JsonObject) -> Json:
    found = await anyio.to_thread.run_sync(request.app.sessions.list)
    return {"sessions": [_json(info) for info in found]}


async def _show(request: RestRequest, arguments: JsonObject) -> Json:
    return _json(request.app.sessions.show(str(arguments["name"])))


async def _reset(request: RestRequest, arguments: JsonObject) -> Json:
    name = str(arguments["name"])
    request.app.sessions.reset(name)
    return {"reset": name}


async def _fork(request: RestRequest, arguments: JsonObject) -> Json:
    name, copy = str(arguments["name"]), str(arguments["copy"])
    return _json(await anyio.to_thread.run_sync(request.app.sessions.fork, name, copy))


def _json(info: SessionInfo) -> Json:
    told = asdict(info)
    names: list[Json] = list(told.pop("bindings")["names"])
    for name in ("interpreter", "generation"):
        told.pop(name)
    return {**told, "names": names}
