"""The workspace: which files there are, and slices of them."""

import base64
import errno
from typing import Any, Final

import anyio.to_thread
from anyio.from_thread import check_cancelled

from toolfold.entrypoints.rest.operations import Operation, RestRequest, closed_object, whole_object
from toolfold.errors import BadInput, NotFound
from toolfold.jsontypes import Json, JsonObject
from toolfold.workspace.verbs import ROOT, WorkspaceVerbs, inner_path

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
    verbs = WorkspaceVerbs(request.app.workspace, max_chars=_MAX_BYTES, check=check_cancelled)
    pattern: JsonObject = {"pattern": str(arguments.get("pattern", "*"))}
    return {"files": await anyio.to_thread.run_sync(verbs.call, "list", pattern)}


async def _read(request: RestRequest, arguments: JsonObject) -> Json:
    given: Any = arguments
    path, offset = inner_path(given["path"]), given.get("offset", 0)
    size = given.get("size", 1_000_000)
    workspace = request.app.workspace

    def read() -> Json:
        content = workspace.read(path, offset, size)
        return {
            "path": f"{ROOT}/{path}",
            "bytes": workspace.stat(path).size,
            "offset": offset,
            "base64": base64.b64encode(content).decode(),
        }

    try:
        return await anyio.to_thread.run_sync(read)
    except OSError as error:
        kind = NotFound if error.errno in {errno.ENOENT, errno.ENOTDIR} else BadInput
        raise kind(f"{error.strerror}: {error.filename}.") from error
