"""Memory as a whole: its tags, the passages of a document, import and export."""

import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import anyio
from starlette.responses import StreamingResponse

from toolfold.entrypoints.rest.answers import HEADERS
from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    call_verb,
    closed_object,
    owned,
    page_of,
    paging,
    whole_object,
)
from toolfold.entrypoints.rest.schemas import schema_of
from toolfold.execution.verb_door import VerbDoor
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.inputs import MAX_LIMIT
from toolfold.memory.models import as_it_is, as_json
from toolfold.memory.transfer.models import Imported

_TEXT: Final[JsonObject] = {"type": "string"}
_PATH: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 4_096}
_LINES: Final = "application/x-ndjson"
_PIECE: Final = 1 << 18


def memory_operations() -> list[Operation]:
    """Return all of them."""
    return [
        Operation(
            method="GET",
            path="/memory/tags",
            summary="The tags that most notes have, and how many those are.",
            tag="memory",
            takes=closed_object(
                {"limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 50}}
            ),
            returns=whole_object(
                {
                    "tags": {
                        "type": "array",
                        "items": whole_object({"tag": _TEXT, "notes": {"type": "integer"}}),
                    }
                }
            ),
            answer=_tags,
        ),
        Operation(
            method="GET",
            path="/documents/passages",
            summary="The hashes of the notes that a document was cut into, in its order.",
            tag="documents",
            takes=closed_object({"path": _PATH, **paging(20, MAX_LIMIT)}, required=("path",)),
            returns=page_of("passages", _TEXT),
            answer=_passages,
        ),
        Operation(
            method="GET",
            path="/memory/export",
            summary="All that is remembered, as lines of JSON; for the local user.",
            tag="memory",
            returns=_TEXT,
            media=_LINES,
            answer=_export,
        ),
        Operation(
            method="POST",
            path="/memory/import",
            summary="Remember what is in a file of this machine; for the local user.",
            tag="memory",
            takes=closed_object(
                {
                    "path": _PATH,
                    "dry_run": {
                        "type": "boolean",
                        "default": False,
                        "description": "Change nothing, and say what would come of it.",
                    },
                },
                required=("path",),
            ),
            returns=schema_of(Imported),
            answer=_import,
        ),
    ]


async def _tags(request: RestRequest, arguments: JsonObject) -> Json:
    limit = int(str(arguments.get("limit", 50)))
    found: Any = await call_verb(
        request,
        "memory.search_by_tag",
        arguments,
        form=as_it_is,
        read=lambda services: services.notes.tags(limit),
    )
    config = request.app.config
    conceal: Callable[[str], str] = str
    if config.settings.privacy.mode != "off":
        patterns = config.settings.privacy.patterns
        conceal = request.app.shared.vaults.vault(config.namespace, patterns).conceal_text
    return {"tags": [{"tag": conceal(tag), "notes": count} for tag, count in found.items()]}


async def _passages(request: RestRequest, arguments: JsonObject) -> Json:
    path = str(arguments["path"])
    found: Any = await call_verb(
        request,
        "memory.documents",
        arguments,
        form=as_it_is,
        read=lambda services: services.documents.passages(path),
    )
    limit: Any = arguments.get("limit", 20)
    offset: Any = arguments.get("offset", 0)
    shown: list[Json] = [*found[offset : offset + limit]]
    end = offset + len(shown)
    return {
        "passages": shown,
        "total": len(found),
        "next_offset": end if shown and end < len(found) else None,
    }


def _owner_door(request: RestRequest) -> VerbDoor:
    """Let the local user reach memory, and nobody else."""
    return request.app.shared.verb_doors.enter(owned(request), request.origin, "rest")


async def _export(request: RestRequest, _arguments: JsonObject) -> StreamingResponse:
    door = _owner_door(request)
    directory = tempfile.TemporaryDirectory(prefix="toolfold-export-")
    path = Path(directory.name) / "memory.jsonl"
    try:
        exported = {"path": str(path), "format": "toolfold"}
        await door.call("memory.export_file", exported, form=as_json)
    except BaseException:
        directory.cleanup()
        raise

    async def pieces() -> AsyncIterator[bytes]:
        try:
            async with await anyio.open_file(path, "rb") as file:
                while piece := await file.read(_PIECE):
                    yield piece
        finally:
            directory.cleanup()

    named = {"content-disposition": 'attachment; filename="memory.jsonl"'}
    return StreamingResponse(pieces(), headers={**HEADERS, **named}, media_type=_LINES)


async def _import(request: RestRequest, arguments: JsonObject) -> Json:
    given = {"path": arguments["path"], "dry_run": bool(arguments.get("dry_run"))}
    imported: Json = await _owner_door(request).call("memory.import_file", given, form=as_json)
    return imported
