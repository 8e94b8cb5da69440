"""The workspace: which files there are, and slices of them."""

from typing import Final

from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    call_verb,
    closed_object,
    whole_object,
)
from toolfold.jsontypes import Json, JsonObject, plain

_MAX_BYTES: Final = 5_000_000
_TEXT: Final[JsonObject] = {"type": "string"}
_COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}


def file_operations() -> list[Operation]:
    """Return all of them."""
    file: JsonObject = {"path": _TEXT, "bytes": _COUNT, "changed_at": {"type": "number"}}
    return [
        Operation(
            method="GET",
            path="/workspace",
            summary="Files that runs have left, by a pattern such as *.csv or results/*.",
            tag="workspace",
            takes=closed_object({"pattern": {**_TEXT, "minLength": 1, "default": "*"}}),
            returns=whole_object({"files": {"type": "array", "items": whole_object(file)}}),
            answer=_list,
        ),
        Operation(
            method="GET",
            path="/workspace/file",
            summary="A slice of one file, in base64.",
            tag="workspace",
            takes=closed_object(
                {
                    "path": {**_TEXT, "minLength": 1},
                    "offset": {**_COUNT, "maximum": 1 << 53, "default": 0},
                    "size": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": _MAX_BYTES,
                        "default": 1_000_000,
                    },
                },
                required=("path",),
            ),
            returns=whole_object(
                {"path": _TEXT, "bytes": _COUNT, "offset": _COUNT, "base64": _TEXT}
            ),
            answer=_read,
        ),
    ]


async def _list(request: RestRequest, arguments: JsonObject) -> Json:
    pattern: JsonObject = {"pattern": str(arguments.get("pattern", "*"))}
    return {"files": await call_verb(request, "workspace.list", pattern, form=plain)}


async def _read(request: RestRequest, arguments: JsonObject) -> Json:
    given: JsonObject = {"offset": 0, "size": 1_000_000, **arguments}
    return await call_verb(request, "workspace.read", given, form=plain, as_bytes=True)
