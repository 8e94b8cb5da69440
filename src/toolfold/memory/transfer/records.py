"""Our own format: a line of JSON for each thing that is remembered.

The first line names the format and its version, the last one says how many lines are between. Notes
come in the order of their making, each before its earlier versions; then events, documents, and the
graph in the lines of server-memory. The same memory always makes the same bytes.

Vectors are not in it, they are made anew. Nor is the history of consolidations, what faded by them,
or how often notes were used.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, TypeAlias, get_args

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.documents.kinds import DocumentKind
from toolfold.memory.documents.models import Document
from toolfold.memory.inputs import (
    MAX_CONTENT_BYTES,
    check_moment,
    check_position,
    check_share,
    clean_content,
    clean_metadata,
    clean_name,
    clean_said,
    clean_tags,
)
from toolfold.memory.models import HASH_CHARS, Event, Link, LinkKind, Note, check_prefix, note_hash

FORMAT: Final = "toolfold-memory"
VERSION: Final = 1

MAX_LINE_BYTES: Final = 8 * MAX_CONTENT_BYTES
"""As JSON, a character can take six times its bytes; tags and metadata come on top."""

_MAX_FORMERLY: Final = 100_000
_MAX_INTEGER: Final = 2**63 - 1


class NoteStage(NamedTuple):
    """What a note was at a time. Two stores that hold the same stage of a note hold the same note.

    The hash alone does not tell: what a note said once, another may say now.
    """

    hash: str
    updated: float


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A note, deleted or not, and its earlier stages, oldest first."""

    note: Note
    formerly: tuple[NoteStage, ...] = ()
    is_archived: bool = False
    """Whether it was a consolidation that deleted it, so that it can still be had by its hash."""


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """What a note was before; `of` is what it is now."""

    of: NoteStage
    note: Note


ArchiveRecord: TypeAlias = NoteRecord | VersionRecord | Event | Document

_WHAT: Final = {
    NoteRecord: "notes",
    VersionRecord: "versions",
    Event: "events",
    Document: "documents",
}


def what_is(record: ArchiveRecord) -> str:
    """Return what such records are called when they are counted."""
    return _WHAT[type(record)]


def first_line() -> str:
    """Return the line that names the format."""
    return _dumped({"format": FORMAT, "version": VERSION})


def last_line(lines: int) -> str:
    """Return the line that says that the file is whole."""
    return _dumped({"type": "end", "lines": lines})


def write_record(record: ArchiveRecord) -> str:
    """Return a record as a line, without its end."""
    if isinstance(record, NoteRecord):
        links = [[link.kind, link.hash] for link in record.note.links]
        state = {"deleted": record.note.deleted, "archived": record.is_archived}
        whole = note_json(record.note) | state
        return _dumped({"type": "note", **whole, "links": links, "formerly": record.formerly})
    if isinstance(record, VersionRecord):
        return _dumped({"type": "version", "of": record.of, **note_json(record.note)})
    if isinstance(record, Event):
        values = asdict(record)
        return _dumped({"type": "event", "event_type": values.pop("type"), **values})
    return _dumped({"type": "document", **asdict(record)})


def parse_line(line: bytes) -> JsonObject:
    """Return the object that stands in a line.

    Raises:
        BadInput: It is not JSON, or not an object.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"It is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise BadInput("It is not a JSON object.")
    return value


def read_record(value: JsonObject) -> ArchiveRecord:
    """Return what a line holds. Whoever wrote it, everything in it is clean and within bounds then.

    Raises:
        BadInput: It is no such record, or something in it cannot be used.
    """
    try:
        match value.get("type"):
            case "note":
                return _note_record(value)
            case "version":
                return VersionRecord(_stage(value["of"]), note_of(value))
            case "event":
                return _event(value)
            case "document":
                return _document(value)
            case other:
                raise BadInput(f"Its type is {str(other)[:60]!r}, which is not supported.")
    except KeyError as error:
        raise BadInput(f"It has no {error.args[0]!r}.") from error


def note_json(note: Note) -> JsonObject:
    """Return what a note says as JSON, without its state and links."""
    return {
        "hash": note.hash,
        "version": note.version,
        "content": note.content,
        "memory_type": note.type,
        "tags": list(note.tags),
        "metadata": note.metadata,
        "source": note.source,
        "thread": note.thread,
        "position": note.position,
        "quality": note.quality,
        "created": note.created,
        "updated": note.updated,
    }


def _note_record(value: JsonObject) -> NoteRecord:
    formerly = _list(value["formerly"], "formerly")
    if len(formerly) > _MAX_FORMERLY:
        raise BadInput(f"It has {len(formerly):,} earlier versions, which is too many.")
    links = tuple(_link(each) for each in _list(value["links"], "links"))
    note = note_of(value, deleted=_time(value["deleted"], "deleted"), links=links)
    is_archived = value["archived"] is True and note.deleted is not None
    return NoteRecord(note, tuple(map(_stage, formerly)), is_archived)


def note_of(
    value: JsonObject, *, deleted: float | None = None, links: tuple[Link, ...] = ()
) -> Note:
    """Return the note that stands in a value.

    Raises:
        BadInput: Something in it cannot be used.
    """
    content = clean_content(value["content"])
    thread, position = check_position(value["thread"], value["position"])
    name = note_hash(content, thread=thread, position=position)
    if value["hash"] != name:
        raise BadInput("Its hash is not that of its content: one of the two was changed.")
    return Note(
        content=content,
        hash=name,
        type=clean_name(value["memory_type"], "type"),
        tags=clean_tags(_list(value["tags"], "tags")),
        metadata=clean_metadata(_mapping(value["metadata"])),
        source=clean_name(value["source"], "source") if value["source"] else "",
        thread=thread,
        position=position,
        quality=check_share(value["quality"], "quality"),
        created=_moment(value["created"], "created"),
        updated=_moment(value["updated"], "updated"),
        version=_whole(value["version"], "version", least=1),
        deleted=deleted,
        links=links,
        namespace="",
    )


def _stage(value: Json) -> NoteStage:
    if not isinstance(value, list) or len(value) != 2:
        raise BadInput("A stage of a note is a hash and a time.")
    return NoteStage(_full_hash(value[0]), _moment(value[1], "updated"))


def _link(value: Json) -> Link:
    kinds = get_args(LinkKind)
    if not isinstance(value, list) or len(value) != 2 or value[0] not in kinds:
        raise BadInput(f"A link is a kind ({', '.join(kinds)}) and a hash.")
    return Link(kind=value[0], hash=_full_hash(value[1]))  # type: ignore[arg-type]


def _event(value: JsonObject) -> Event:
    duration = value["duration_ms"]
    outcome, session = value["outcome"], value["session_id"]
    return Event(
        id=clean_name(value["id"], "id of an event"),
        type=clean_name(value["event_type"], "event type"),
        content=clean_said(value["content"], "The content of an event"),
        outcome=None if outcome is None else clean_name(outcome, "outcome"),
        duration_ms=None if duration is None else _moment(duration, "duration_ms"),
        session_id=None if session is None else clean_name(session, "session"),
        metadata=clean_metadata(_mapping(value["metadata"])),
        at=_moment(value["at"], "at"),
    )


def _document(value: JsonObject) -> Document:
    if value["kind"] not in get_args(DocumentKind):
        raise BadInput(f"No document is of the kind {str(value['kind'])[:60]!r}.")
    pages = value["pages"]
    return Document(
        path=clean_name(value["path"], "path"),
        kind=value["kind"],  # type: ignore[arg-type]
        title=clean_name(value["title"], "title"),
        pages=None if pages is None else _whole(pages, "pages"),
        digest=_full_hash(value["digest"]),
        tags=clean_tags(_list(value["tags"], "tags")),
        ingested=_moment(value["ingested"], "ingested"),
        size=_whole(value["size"], "size"),
        modified_ns=_whole(value["modified_ns"], "modified_ns"),
        reader=_whole(value["reader"], "reader"),
        chunks=_whole(value["chunks"], "chunks"),
    )


def _full_hash(value: Json) -> str:
    found = check_prefix(value)
    if len(found) != HASH_CHARS:
        raise BadInput(f"A hash has {HASH_CHARS} characters here, and {found!r} has not.")
    return found


def _whole(value: Json, what: str, *, least: int = 0) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not least <= value <= _MAX_INTEGER:  # type: ignore[operator]
        raise BadInput(f"`{what}` is a whole number from {least} on.")
    return value  # type: ignore[return-value]


def _moment(value: Json, what: str) -> float:
    found = _time(value, what)
    if found is None:
        raise BadInput(f"`{what}` is missing.")
    return found


def _time(value: Json, what: str) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise BadInput(f"`{what}` is a number.")
    return check_moment(value, what)


def _list(value: Json, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput(f"`{what}` is a list.")
    return value


def _mapping(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise BadInput("`metadata` is an object.")
    return value


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
